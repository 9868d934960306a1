// Two threads add and remove tasks of an executive that runs, whose own task calls into it too.
//
// A body in the loop is one more caller: while a thread waits for the loop to take its task, that body
// is answered, and not made to wait for the thread.
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include <unistd.h>

#include <punctual.hpp>

#include "check.h"

constexpr unsigned rounds = 20;

// For a thread sanitizer, which does not see what the library, built without one, does between its
// threads: that it hands bodies to its loops looks like a race. What this program is about does not.
extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
extern "C" const char *__tsan_default_suppressions();
extern "C" const char *__tsan_default_suppressions() {
    return "race:punctual::executive::call\n";
}

// Nothing, or the errno, which must be one of these.
template <typename Call> static int answer(Call call, int one, int other) {
    try {
        call();
        return 0;
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == one || why.code().value() == other);
        return why.code().value();
    }
}

// Adds a task, sees it run, and removes it, a few times; a call that meets the other thread's comes
// again, as nobody is made to wait for another.
static void come_and_go(punctual::executive &executive, const std::string &name) {
    for (unsigned round = 0; round < rounds; round++) {
        std::atomic<unsigned> ran{0};
        std::uint32_t index = 0;
        std::weak_ptr<int> held;
        std::string own = name + std::to_string(round);
        auto add = [&] {
            auto holds = std::make_shared<int>(0);
            held = holds;
            index = executive.add(own.c_str(), punctual::task(1'000'000),
                                  [&ran, holds](const punctual_cycle &) { return ++ran, *holds; });
        };
        while (answer(add, EBUSY, EBUSY) != 0) {
            punctual_wait_until_ns(punctual::now_ns() + 100'000, 0);
        }
        while (ran == 0) {
            punctual_wait_until_ns(punctual::now_ns() + 1'000'000, 0);
        }
        CHECK(!held.expired());
        while (answer([&] { executive.remove(index); }, EBUSY, EBUSY) != 0) {
            punctual_wait_until_ns(punctual::now_ns() + 100'000, 0);
        }
        CHECK(held.expired()); // a body that was removed is freed
    }
}

int main() {
    alarm(120); // a caller that is made to wait for ever ends here
    punctual::executive executive;
    std::atomic<unsigned> refused{0};
    executive.add("steady", punctual::task(1'000'000), [&](const punctual_cycle &) {
        auto add = [&] {
            executive.add("own", punctual::task(1'000'000), [](const punctual_cycle &) { return 0; });
        };
        // Of the loop that it is in, or in use by one of the threads.
        refused += answer(add, EDEADLK, EBUSY) != 0;
        return PUNCTUAL_CONTINUE;
    });
    // Background work that is replaced is freed, and the other one runs.
    std::weak_ptr<int> replaced;
    std::atomic<unsigned> slices{0};
    {
        auto holds = std::make_shared<int>(PUNCTUAL_STOP);
        replaced = holds;
        executive.idle(10'000, [holds] { return *holds; });
    }
    CHECK(!replaced.expired());
    executive.idle(10'000, [&slices] { return slices++, PUNCTUAL_CONTINUE; });
    CHECK(replaced.expired());
    std::thread runs([&] { executive.run(plain(0)); });
    while (refused == 0) {
        punctual_wait_until_ns(punctual::now_ns() + 1'000'000, 0);
    }
    std::thread one([&] { come_and_go(executive, "one"); });
    std::thread other([&] { come_and_go(executive, "other"); });
    one.join();
    other.join();
    executive.stop();
    runs.join();
    punctual_stats stats = executive.stats(0);
    CHECK(stats.ran > 0 && stats.ran == refused && slices > 0);
}
