// A loop of 1 kHz for so many seconds, in C++, watched by another thread: each_ms [SECONDS] [CPU]
//
//     c++ -std=c++17 each_ms.cpp $(pkg-config --cflags --libs punctual) -o each_ms
//
// As root for numbers that a real-time loop would get.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <punctual.hpp>

namespace {

using namespace std::chrono_literals;

// Prints once a second how it goes, until it goes itself; never disturbs the loop.
class watcher {
public:
    explicit watcher(const punctual::loop &each_ms) : thread([&] { watch(each_ms); }) {}

    // Also where the loop throws: a thread that nobody joins would end the program.
    ~watcher() {
        done = true;
        thread.join();
    }

    watcher(const watcher &) = delete;
    watcher &operator=(const watcher &) = delete;

private:
    void watch(const punctual::loop &each_ms) {
        for (auto at = punctual::now() + 1s; !done; at += 1s) {
            punctual::wait_until(at);
            punctual_stats stats = each_ms.stats();
            std::cout << stats.ran << " cycles, " << stats.missed << " missed\n";
        }
    }

    std::atomic<bool> done{false};
    std::thread thread;
};

} // namespace

int main(int argc, char **argv) try {
    std::uint64_t cycles = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10) * 1000;
    punctual::options options(1ms);
    if (argc > 2) {
        options.cpu = std::atoi(argv[2]);
    }
    punctual::loop each_ms(options);
    std::chrono::duration<double> integral{0};
    {
        watcher prints(each_ms);
        for (std::uint64_t n = 0; n < cycles; n++) {
            const punctual_cycle *cycle = each_ms.wait();
            if (cycle == nullptr) {
                break;
            }
            integral += punctual::duration(cycle->dt_ns); // the work: read, compute, write
        }
        each_ms.stop(); // what passes while the watcher goes is no miss of the loop
    }

    punctual_stats did = each_ms.finish();
    std::cout << integral.count() << " s of loop, late by at most " << did.max_ns << " ns\n";
    return EXIT_SUCCESS;
} catch (const punctual::error &why) {
    std::cerr << why.what() << '\n';
    return EXIT_FAILURE;
}
