// What C++ makes of it: exceptions of ours for failures, exceptions of theirs through a run.
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>

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
    punctual::periodic periodic;
    unsigned ran = 0;
    periodic.add("steady", 1'000'000, 1, [&](const punctual_cycle &) { return ++ran, 0; });
    std::uint32_t index = periodic.add("thrower", 5'000'000, 1, [&](const punctual_cycle &cycle) {
        if (ran >= 5) {
            throw std::runtime_error("at " + std::to_string(cycle.n));
        }
        return 0;
    });
    periodic.build();
    periodic.remove(periodic.add("short", 2'000'000, 1, [](const punctual_cycle &) { return 1; }));
    try {
        periodic.run(plain(0));
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()).rfind("at ", 0) == 0);
    }
    CHECK(ran >= 5 && periodic.stats(index).ran >= 1);
}

static void calendars() {
    punctual::calendar calendar(5'000'000);
    punctual::periodic beside;
    punctual::unit wide;
    wide.deadline_ns = 5'000'000;
    unsigned parts = 0, ran = 0;
    std::uint32_t steady = calendar.add("steady", 100'000, [&](const punctual_cycle &cycle) {
        parts += cycle.part > 0;
        return cycle.part == 0 ? PUNCTUAL_BREAK : PUNCTUAL_CONTINUE;
    }, wide);
    wide.after = "steady";
    try {
        punctual::calendar twice(1'000'000);
        twice.add("one", 600'000, [](const punctual_cycle &) { return 0; });
        twice.add("two", 600'000, [](const punctual_cycle &) { return 0; });
        twice.build();
        CHECK(false);
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == ENOSPC);
        CHECK(std::string(why.what()).find("\"one\" at 0 to 600000 ns") != std::string::npos);
    }
    std::uint32_t more = calendar.add("more", 50'000, [](const punctual_cycle &) { return 0; }, wide);
    calendar.build();
    punctual::task thrifty;
    thrifty.budget_ns = 50'000;
    std::uint32_t index = beside.add("thrower", 10'000'000, 1, [&](const punctual_cycle &) -> int {
        if (++ran > 2 && parts > 1) {
            throw std::runtime_error("beside");
        }
        return 0;
    }, thrifty);
    beside.build();
    try {
        calendar.run(beside, plain(0));
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "beside");
    }
    CHECK(beside.stats(index).ran == ran && beside.quantile_ns(index, 0.5));
    CHECK(calendar.counts(steady).breaks >= parts && calendar.stats(more).ran > 0);
    CHECK(calendar.quantile_ns(steady, 0.5));
    calendar.run(plain(0), 20'000'000);
    calendar.stop();
    calendar.run(plain(0));
}

static punctual_options released() {
    punctual_options options = plain(0);
    options.priority = 50;
    return options;
}

static void workers() {
    punctual::workers crew;
    std::atomic<unsigned> ran{0}, cycles{0};
    crew.add("steady", 1'000'000, 1, [&](const punctual_cycle &) { return ++ran, 0; });
    std::uint32_t thrower = crew.add("thrower", 2'000'000, 1, [&](const punctual_cycle &) -> int {
        if (ran > 5 && cycles > 2) {
            throw std::runtime_error("aloft");
        }
        return 0;
    });
    std::uint32_t paced = crew.add_external(
        "paced", 1'000'000, 1,
        [&] {
            punctual_wait_until_ns(punctual::now_ns() + 1'000'000, 0);
            return crew.ending() ? 0 : 1;
        },
        [&](const punctual_cycle &) { return ++cycles, 0; });
    crew.grace_ns(1'000'000);
    crew.pin(-1);
    crew.build();
    try {
        crew.run(released());
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "aloft");
    }
    CHECK(crew.stats(thrower).ran >= 1 && crew.outcome(thrower).demoted == 0);
    CHECK(crew.stats(paced).ran + 1 == cycles && crew.quantile_ns(paced, 0.5));
    crew.stop();
    CHECK(crew.ending());
    crew.run(released());
}

static void sources() {
    punctual::workers crew;
    crew.add_external(
        "paced", 1'000'000, 1, []() -> int { throw std::runtime_error("no device"); },
        [](const punctual_cycle &) { return 0; });
    crew.build();
    try {
        crew.run(released());
        CHECK(false);
    } catch (const std::runtime_error &why) {
        CHECK(std::string(why.what()) == "no device");
    }
}

static void loops() {
    punctual::loop loop(plain(1'000'000));
    CHECK(!loop.quantile_ns(0.5));
    const punctual_cycle *cycle = loop.wait();
    CHECK(cycle != nullptr && cycle->n == 0);
    CHECK(loop.quantile_ns(0.5) && loop.refused().empty());
    punctual::loop moved = std::move(loop);
    moved.stop();
    CHECK(moved.wait() == nullptr && moved.last_answer() == -ECANCELED);
    CHECK(moved.stats().ran == 1 && moved.wait_info().learns == 0);
}

int main() {
    failures();
    processes();
    bodies();
    calendars();
    workers();
    sources();
    loops();
}
