// Three rates in one loop, each with what an overrun of it does, in C++: tasks [SECONDS]
//
//     c++ -std=c++17 tasks.cpp $(pkg-config --cflags --libs punctual) -o tasks
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include <punctual.hpp>

using namespace std::chrono_literals;

int main(int argc, char **argv) try {
    std::chrono::seconds time(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10);
    double position = 0.0, target = 0.0;
    unsigned shown = 0;
    punctual::task servo(1ms), plan(20ms), display(1'000'000'000, 3);
    plan.on_overrun = PUNCTUAL_OVERRUN_TERMINATE;
    display.on_overrun = PUNCTUAL_OVERRUN_BURST;
    display.burst = 3;

    punctual::executive executive;
    executive.add("servo", servo, [&](const punctual_cycle &cycle) {
        std::chrono::duration<double> dt = punctual::duration(cycle.dt_ns);
        position += 0.25 * dt.count();
        return PUNCTUAL_CONTINUE;
    });
    executive.add("plan", plan, [&](const punctual_cycle &) {
        for (int step = 0; step < 200'000 && !punctual::cancelled(); step++) {
            target = 0.5 * target + step; // the best so far is kept
        }
        return PUNCTUAL_CONTINUE;
    });
    executive.add("display", display, [&](const punctual_cycle &) {
        shown++; // printing is no task of a real-time thread
        return PUNCTUAL_CONTINUE;
    });
    executive.run(punctual::options(), time);
    std::cout << executive.summary() << "\nat " << position << ", shown " << shown << " times\n";
    return EXIT_SUCCESS;
} catch (const punctual::error &why) {
    std::cerr << why.what() << '\n';
    return EXIT_FAILURE;
}
