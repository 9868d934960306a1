// A loop of 1 kHz for so many seconds, in C++, watched by another thread: each_ms [SECONDS] [CPU]
//
//     c++ -std=c++17 each_ms.cpp $(pkg-config --cflags --libs punctual) -o each_ms
//
// As root for numbers that a real-time loop would get.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include <punctual.hpp>

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// Prints once a second how it goes; never disturbs the loop.
void watch(const punctual::loop &each_ms, const std::atomic<bool> &done) {
    for (std::uint64_t at_ns = punctual::now_ns() + second_ns; !done; at_ns += second_ns) {
        punctual_wait_until_ns(at_ns, 0);
        punctual_stats stats = each_ms.stats();
        std::cout << stats.ran << " cycles, " << stats.missed << " missed\n";
    }
}

} // namespace

int main(int argc, char **argv) try {
    std::uint64_t cycles = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10) * 1000;
    punctual::options options(1'000'000);
    if (argc > 2) {
        options.cpu = std::atoi(argv[2]);
    }
    punctual::loop each_ms(options);
    std::atomic<bool> done{false};
    std::thread watcher(watch, std::cref(each_ms), std::cref(done));

    double integral_s = 0.0;
    for (std::uint64_t n = 0; n < cycles; n++) {
        const punctual_cycle *cycle = each_ms.wait();
        if (cycle == nullptr) {
            break;
        }
        integral_s += static_cast<double>(cycle->dt_ns) / 1e9; // the work: read, compute, write
    }

    done = true;
    watcher.join();
    std::cout << integral_s << " s of loop, late by at most " << each_ms.stats().max_ns << " ns\n";
    return EXIT_SUCCESS;
} catch (const punctual::error &why) {
    std::cerr << why.what() << '\n';
    return EXIT_FAILURE;
}
