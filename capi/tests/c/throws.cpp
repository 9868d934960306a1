// What C++ makes of it: exceptions of ours for failures, exceptions of theirs through a run.
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <punctual.hpp>

#include "check.h"

static void failures() {
    try {
        punctual::loop none{punctual::options(0)};
        CHECK(false);
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == EINVAL);
        CHECK(std::string(why.what()).find("a period of 0/1 ns") != std::string::npos);
    }
}

static void processes() {
    try {
        punctual::process none;
        CHECK(false);
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == ENOTCONN);
    }
    try {
        punctual::process none("nobody-of-this-name", "task");
        none.commit(1.0);
        CHECK(none.wait() != nullptr && !none.cancelled());
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == ENOENT || why.code().value() == EACCES);
    }
}

static void bodies() {
    punctual::executive executive;
    unsigned ran = 0;
    punctual::task each_ms(1'000'000);
    executive.add("steady", each_ms, [&](const punctual_cycle &) { return ++ran, 0; });
    std::uint32_t index = executive.add("thrower", punctual::task(5'000'000),
                                        [&](const punctual_cycle &cycle) {
        if (ran >= 5) {
            throw std::runtime_error("at " + std::to_string(cycle.n));
        }
        return 0;
    });
    executive.build(plain(0));
    CHECK(executive.layout(0).rank == 0 && executive.layout(index).rank == 1);
    CHECK(executive.peak() == 2);
    executive.remove(executive.add("short", punctual::task(2'000'000),
                                   [](const punctual_cycle &) { return 1; }));
    try {
        executive.run(plain(0));
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()).rfind("at ", 0) == 0);
    }
    CHECK(ran >= 5 && executive.stats(index).ran >= 1);
    CHECK(executive.summary().find("steady: ") == 0 && executive.refused().empty());
    CHECK(executive.wait_info().learns == 0);
}

static void warnings() {
    punctual::executive executive;
    punctual::task plan(100'000'000);
    plan.budget_ns = 20'000'000;
    auto nothing = [](const punctual_cycle &) { return 0; };
    executive.add("plan", plan, nothing);
    executive.build(plain(0));
    CHECK(executive.warnings().empty());
    std::uint32_t index = executive.add("servo", punctual::task(1'000'000), nothing);
    CHECK(executive.warnings().find("\"servo\"") != std::string::npos);
    executive.remove(index);
    CHECK(executive.warnings().empty());
}

static void units() {
    punctual::executive executive;
    punctual::unit wide;
    wide.deadline_ns = 5'000'000;
    unsigned cycles = 0, parts = 0, ran = 0;
    executive.frame(5'000'000);
    std::uint32_t steady = executive.add_unit("steady", 100'000, [&](const punctual_cycle &cycle) {
        cycles += cycle.part == 0;
        parts += cycle.part > 0;
        return cycle.part == 0 ? PUNCTUAL_BREAK : PUNCTUAL_CONTINUE;
    }, wide);
    wide.after = "steady";
    try {
        punctual::executive twice;
        twice.frame(1'000'000);
        twice.add_unit("one", 600'000, [](const punctual_cycle &) { return 0; });
        twice.add_unit("two", 600'000, [](const punctual_cycle &) { return 0; });
        twice.build();
        CHECK(false);
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == ENOSPC);
        CHECK(std::string(why.what()).find("\"one\" at 0 to 600000 ns") != std::string::npos);
    }
    std::uint32_t more =
        executive.add_unit("more", 50'000, [](const punctual_cycle &) { return 0; }, wide);
    punctual::task thrifty(10'000'000);
    thrifty.budget_ns = 50'000;
    std::uint32_t index = executive.add("thrower", thrifty, [&](const punctual_cycle &) -> int {
        if (++ran > 2 && parts > 1) {
            throw std::runtime_error("beside");
        }
        return 0;
    });
    try {
        executive.run(plain(0));
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "beside");
    }
    CHECK(executive.stats(index).ran == ran && executive.quantile_ns(index, 0.5));
    CHECK(executive.stats(steady).ran == cycles && executive.stats(more).ran > 0);
    CHECK(executive.quantile_ns(steady, 0.5));
    CHECK(executive.remove(index).ran == ran);
    ran = parts = 0;
    executive.run(plain(0), 20'000'000);
    executive.stop();
    executive.run(plain(0));
}

static punctual_options released() {
    punctual_options options = plain(0);
    options.priority = 50;
    return options;
}

static punctual::task in_thread(std::uint64_t period_ns) {
    punctual::task task(period_ns);
    task.place = PUNCTUAL_PLACE_THREAD;
    return task;
}

static void threads() {
    punctual::executive executive;
    std::atomic<unsigned> ran{0}, cycles{0};
    executive.add("steady", in_thread(1'000'000), [&](const punctual_cycle &) { return ++ran, 0; });
    std::uint32_t thrower =
        executive.add("thrower", in_thread(2'000'000), [&](const punctual_cycle &) -> int {
            if (ran > 5 && cycles > 2) {
                throw std::runtime_error("aloft");
            }
            return 0;
        });
    std::uint32_t triggered = executive.add(
        "triggered", in_thread(1'000'000),
        [&] {
            punctual_wait_until_ns(punctual::now_ns() + 1'000'000, 0);
            return executive.stopped() ? 0 : 1;
        },
        [&](const punctual_cycle &) { return ++cycles, 0; });
    punctual_options options = released();
    options.grace_ns = 1'000'000;
    try {
        executive.run(options);
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "aloft");
    }
    CHECK(executive.stats(thrower).ran >= 1 && executive.stats(thrower).demoted == 0);
    CHECK(executive.stats(triggered).ran + 1 == cycles && executive.quantile_ns(triggered, 0.5));
    executive.stop();
    CHECK(executive.stopped());
    executive.run(released());
}

static void triggers() {
    punctual::executive executive;
    executive.add(
        "triggered", punctual::task(), []() -> int { throw std::runtime_error("no device"); },
        [](const punctual_cycle &) { return 0; });
    try {
        executive.run(released());
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "no device");
    }
}

static void background() {
    punctual::executive executive;
    executive.add("rare", punctual::task(10'000'000), [](const punctual_cycle &) { return 0; });
    executive.idle(1'000, []() -> int { throw std::runtime_error("idle"); });
    try {
        executive.run(plain(0));
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "idle");
    }
}

static void follows() {
    punctual::follow tai(1'000'000);
    punctual_options options = plain(1'000'000);
    options.follow = tai.get();
    punctual::loop loop(options);
    const punctual_cycle *cycle = loop.wait();
    CHECK(cycle != nullptr && cycle->release_ns % 1'000'000 == 0);
    CHECK(cycle->release_ns > punctual::now_ns() && tai.status().stops == 0);
}

static void loops() {
    punctual::loop loop(plain(1'000'000));
    CHECK(!loop.quantile_ns(0.5));
    const punctual_cycle *cycle = loop.wait();
    CHECK(cycle != nullptr && cycle->n == 0);
    CHECK(loop.quantile_ns(0.5) && loop.refused().empty());
    punctual::loop moved = std::move(loop);
    CHECK(!moved.stopped());
    moved.stop();
    CHECK(moved.stopped() && moved.wait() == nullptr && moved.last_answer() == -ECANCELED);
    CHECK(moved.stats().ran == 1 && moved.wait_info().learns == 0);
    std::string summary = moved.summary();
    CHECK(summary.find("loop: 1 ran, ") == 0 && summary.find("\nstopped") != std::string::npos);
    CHECK(moved.summary() == summary && moved.finish().ran == 1);
}

static void forks() {
    punctual::loop loop(plain(1'000'000));
    punctual::executive executive;
    CHECK(!loop.stopped() && !executive.stopped());
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        _exit(loop.stopped() && executive.stopped() ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(!loop.stopped() && !executive.stopped());
}

int main() {
    failures();
    processes();
    bodies();
    warnings();
    units();
    threads();
    triggers();
    background();
    follows();
    loops();
    forks();
}
