// Durations of std::chrono where the header has nanoseconds, and results read as such.
#include <chrono>
#include <cerrno>
#include <cstdint>
#include <string>
#include <type_traits>

#include <punctual.hpp>

#include "check.h"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

static_assert(punctual::span(200us) == 200'000 && punctual::span(3).ns() == 3, "");
static_assert(punctual::span(std::chrono::hours(1)).ns() == 3'600'000'000'000, "");
static_assert(punctual::span(std::chrono::duration<std::uint64_t, std::nano>(UINT64_MAX)) ==
                  UINT64_MAX, "what nobody watches");
static_assert(punctual::period(1ms).num_ns() == 1'000'000 && punctual::period(1ms).den() == 1, "");
using third = std::chrono::duration<int, std::ratio<1, 3>>;
static_assert(punctual::period(third(2)).num_ns() == 2'000'000'000, "");
static_assert(punctual::period(third(2)).den() == 3, "exactly");
static_assert(punctual::duration(std::uint64_t{5}) == 5ns, "");
static_assert(punctual::duration(std::int64_t{-5}) == -5ns, "");
static_assert(punctual::duration(UINT64_MAX) == nanoseconds::max(), "");
static_assert(punctual::duration(1500.0) == std::chrono::duration<double, std::micro>(1.5), "");
static_assert(!std::is_convertible<std::string, punctual::span>::value, "");

template <typename Call> static std::string refused(Call call) {
    try {
        call();
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == EINVAL);
        return why.what();
    }
    return "";
}

static void what_is_no_span_is_named() {
    CHECK(refused([] { punctual::span(-5ms); }).find("(got -5 times 1/1000 s)") != std::string::npos);
    CHECK(refused([] { punctual::period(-1); }).find("(got -1 times ") != std::string::npos);
    CHECK(!refused([] { punctual::span(std::chrono::hours(10'000'000)); }).empty());
    CHECK(refused([] { punctual::span(std::chrono::hours(5'000'000)); }).empty());
}

static void instants() {
    auto before = std::chrono::steady_clock::now();
    auto now = punctual::now();
    CHECK(before <= now && now <= std::chrono::steady_clock::now());
    CHECK(punctual::instant(1'000'000'000).time_since_epoch() == 1s);
    CHECK(punctual::wait_until(now + 2ms, 100us) && punctual::now() >= now + 2ms);
    CHECK(punctual::wait_until(now - 1h));
}

static void loops() {
    punctual::options options(1ms);
    CHECK(options.period_num_ns == 1'000'000 && options.period_den == 1);
    CHECK(punctual::options(third(1)).period_den == 3);
    options = punctual::options(1'000'000'000, 3);
    CHECK(options.period_num_ns == 1'000'000'000 && options.period_den == 3);
    options.watchdog_ns = punctual::span(2s);
    CHECK(options.watchdog_ns == 2'000'000'000);

    punctual::loop loop(plain(punctual::span(1ms)));
    CHECK(!loop.quantile(0.5));
    const punctual_cycle *cycle = loop.wait();
    CHECK(cycle != nullptr && punctual::duration(cycle->dt_ns) == 1ms);
    CHECK(punctual::instant(cycle->release_ns) <= punctual::now());
    CHECK(punctual::duration(cycle->lateness_ns) >= 0ns);
    CHECK(loop.quantile(1.0) && loop.quantile(1.0)->count() == *loop.quantile_ns(1.0));
}

static void tasks() {
    punctual::executive executive;
    punctual::task steady(5ms);
    steady.budget_ns = punctual::span(100us);
    std::uint32_t index =
        executive.add("steady", steady, [](const punctual_cycle &) { return PUNCTUAL_CONTINUE; });
    executive.idle(10us, [] { return PUNCTUAL_BREAK; });
    executive.build(plain(0));
    CHECK(punctual::duration(executive.layout(index).deadline_ns) == 5ms);
    executive.run(plain(0), 22ms);
    CHECK(executive.stats(index).ran + executive.stats(index).missed == 5);
    CHECK(executive.quantile(index, 0.5));

    punctual::executive framed;
    framed.frame(10ms);
    index = framed.add_unit("unit", 1ms, [](const punctual_cycle &) { return PUNCTUAL_STOP; });
    framed.build(plain(0));
    CHECK(punctual::duration(framed.layout(index).phase_ns) == 0ns);
    framed.frame(1'000'000'000, 100);
    framed.build(plain(0));
    CHECK(refused([&] { framed.frame(third(1)); }).find("frame") != std::string::npos);
}

static void follows() {
    punctual::follow tai(1ms);
    CHECK(punctual::duration(tai.status().phase_max_ns) >= 0ns);
    try {
        punctual::follow none("/nowhere/ptp0", 1ms);
        CHECK(false);
    } catch (const punctual::error &why) {
        CHECK(why.code().value() == ENOENT);
    }
}

int main() {
    what_is_no_span_is_named();
    instants();
    loops();
    tasks();
    follows();
}
