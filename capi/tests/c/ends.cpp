// How a loop ends in C++: finish() throws what the destructor is silent about; ends SAMPLES.
#include <cerrno>
#include <string>
#include <thread>

#include <unistd.h>

#include <punctual.hpp>

#include "check.h"

// The errno of what finish() throws, whose text has these words; 0 for none.
static int failed(punctual::loop &loop, const std::string &words) {
    try {
        loop.finish();
        return 0;
    } catch (const punctual::error &why) {
        CHECK(std::string(why.what()).find(words) != std::string::npos);
        return why.code().value();
    }
}

static void what_it_did_is_said() {
    punctual::loop loop(plain(1'000'000));
    for (int i = 0; i < 5; i++) {
        CHECK(loop.wait() != nullptr);
    }
    int elsewhere = 0;
    std::thread([&] { elsewhere = failed(loop, "by the thread that created it"); }).join();
    CHECK(elsewhere == EPERM && !loop.stopped());
    punctual_stats done = loop.finish();
    CHECK(done.ran == 5 && done.forced == 0 && loop.get() == nullptr);
    CHECK(failed(loop, "loop is null") == EINVAL);
    CHECK(loop.stopped() && loop.wait() == nullptr);

    punctual::loop sleeps(plain(1'000'000));
    CHECK(!sleeps.learned());
    punctual::options knows(std::chrono::milliseconds(1));
    knows.learn_first = 0;
    punctual::learned_bytes damaged{};
    knows.know(damaged);
    CHECK(punctual::loop(knows).refused().find("learned: ") != std::string::npos);

    punctual::loop never(plain(1'000'000));
    CHECK(never.finish().ran == 0);
}

static void samples_that_are_not_whole_are_thrown(const char *samples) {
    punctual_options options = plain(1'000'000);
    options.samples = samples;
    punctual::loop loop(options);
    do { // what is there is written within a second
        CHECK(loop.wait() != nullptr);
    } while (unlink(samples) != 0);
    CHECK(failed(loop, samples) == EIO && loop.get() == nullptr);
    punctual::loop whole(options);
    CHECK(whole.wait() != nullptr && whole.finish().ran == 1);
    CHECK(unlink(samples) == 0);
}

static void a_watchdog_that_bit_is_thrown() {
    punctual_options options = plain(1'000'000);
    options.watchdog_ns = punctual::span(std::chrono::milliseconds(100));
    punctual::loop loop(options);
    CHECK(loop.wait() != nullptr);
    while (!loop.stopped()) {
        // gets nowhere until that is seen
    }
    CHECK(failed(loop, "the watchdog stopped the loop: ") == ETIMEDOUT && loop.get() == nullptr);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    what_it_did_is_said();
    samples_that_are_not_whole_are_thrown(argv[1]);
    a_watchdog_that_bit_is_thrown();
}
