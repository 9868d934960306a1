// punctual.hpp: punctual.h for C++17 and newer. Owners that clean up, and errors that are thrown.
//
// Header only, and thin: every function here says which of punctual.h it calls; units, ranges and
// real-time labels are those of that one. What allocates or throws here does so in setup only;
// wait(), stop() and now_ns() never throw.
//
// Where nanoseconds are taken, so are durations of std::chrono: 1ms, 200us. A field of a struct takes
// one by span, task.budget_ns = punctual::span(200us), and is read as one by duration():
// punctual::duration(cycle->dt_ns).
#ifndef PUNCTUAL_HPP
#define PUNCTUAL_HPP

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <ratio>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "punctual.h"

namespace punctual {

// A failure: code() is the errno, what() the words of punctual_last_error().
class error : public std::system_error {
public:
    explicit error(int answer)
        : std::system_error(-answer, std::generic_category(), words(answer)) {}

    // In words of its own, whatever failed last.
    error(int answer, const std::string &own)
        : std::system_error(-answer, std::generic_category(), own) {}

private:
    static std::string words(int answer) {
        std::string last = punctual_last_error();
        return last.empty() ? punctual_strerror(answer) : last;
    }
};

// Throws what is no 0.
inline void check(int answer) {
    if (answer != 0) {
        throw error(answer);
    }
}

// punctual_now_ns()
inline std::uint64_t now_ns() noexcept { return punctual_now_ns(); }

// A fraction of nanoseconds that is not negative, of a number of them or of a duration of std::chrono;
// EINVAL for any other.
struct fraction {
    std::uint64_t num_ns;
    std::uint64_t den;

    template <typename Number> static constexpr fraction of_number(Number ns) {
        static_assert(std::is_integral<Number>::value, "whole nanoseconds, or a duration");
        return scaled<std::nano>(ns);
    }

    template <typename Rep, typename Unit>
    static constexpr fraction of_duration(const std::chrono::duration<Rep, Unit> &from) {
        static_assert(std::is_integral<Rep>::value,
                      "a duration of whole units: std::chrono::round() makes one of any other");
        return scaled<Unit>(from.count());
    }

private:
    template <typename Unit, typename Number> static constexpr fraction scaled(Number count) {
        using ns = std::ratio_divide<Unit, std::nano>;
        constexpr std::uint64_t num = ns::num, den = ns::den;
        constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / num;
        if (count < Number(0) || static_cast<std::uint64_t>(count) > most) {
            throw error(-EINVAL, "a duration must be from 0 to 2^64 ns (got " +
                                     std::to_string(count) + " times " + std::to_string(Unit::num) +
                                     "/" + std::to_string(Unit::den) + " s)");
        }
        return {static_cast<std::uint64_t>(count) * num, den};
    }
};

// A span where the header takes nanoseconds: a number of them, or a duration of whole ones.
class span {
public:
    template <typename Number, std::enable_if_t<std::is_arithmetic<Number>::value, int> = 0>
    constexpr span(Number ns) : count(fraction::of_number(ns).num_ns) {}

    template <typename Rep, typename Unit>
    constexpr span(const std::chrono::duration<Rep, Unit> &from)
        : count(fraction::of_duration(from).num_ns) {
        static_assert(std::ratio_divide<Unit, std::nano>::den == 1, "whole nanoseconds");
    }

    // The number of them.
    constexpr std::uint64_t ns() const noexcept { return count; }
    constexpr operator std::uint64_t() const noexcept { return count; }

private:
    std::uint64_t count;
};

// A period where the header takes num/den nanoseconds: a whole number of them, or a duration of any
// unit, exactly; std::chrono::duration<int, std::ratio<1, 3>>(1) is 3 Hz.
class period {
public:
    template <typename Number, std::enable_if_t<std::is_arithmetic<Number>::value, int> = 0>
    constexpr period(Number ns) : exact(fraction::of_number(ns)) {}

    template <typename Rep, typename Unit>
    constexpr period(const std::chrono::duration<Rep, Unit> &from)
        : exact(fraction::of_duration(from)) {}

    constexpr period(std::uint64_t num_ns, std::uint64_t den) noexcept : exact{num_ns, den} {}

    constexpr std::uint64_t num_ns() const noexcept { return exact.num_ns; }
    constexpr std::uint64_t den() const noexcept { return exact.den; }

private:
    fraction exact;
};

// A result in nanoseconds as std::chrono has it. What is longer than that can hold, such as the
// UINT64_MAX of a layout, is the longest that it can.
constexpr std::chrono::nanoseconds duration(std::uint64_t ns) noexcept {
    using rep = std::chrono::nanoseconds::rep;
    constexpr std::uint64_t most = std::numeric_limits<rep>::max();
    return std::chrono::nanoseconds(static_cast<rep>(ns < most ? ns : most));
}
constexpr std::chrono::nanoseconds duration(std::int64_t ns) noexcept {
    return std::chrono::nanoseconds(ns);
}
constexpr std::chrono::duration<double, std::nano> duration(double ns) noexcept {
    return std::chrono::duration<double, std::nano>(ns);
}

// An instant of CLOCK_MONOTONIC as std::chrono has it, whose steady_clock that is on Linux; not one of
// a clock that is followed.
constexpr std::chrono::steady_clock::time_point instant(std::uint64_t ns) noexcept {
    using std::chrono::steady_clock;
    return steady_clock::time_point(std::chrono::duration_cast<steady_clock::duration>(duration(ns)));
}

// punctual_now_ns() as std::chrono has it.
inline std::chrono::steady_clock::time_point now() noexcept { return instant(now_ns()); }

// punctual_wait_until_ns(): false where a signal was handled before the instant came.
inline bool wait_until(std::chrono::steady_clock::time_point at, span margin = 0) noexcept {
    std::chrono::nanoseconds ns = at.time_since_epoch();
    std::uint64_t at_ns = ns.count() < 0 ? 0 : static_cast<std::uint64_t>(ns.count());
    return punctual_wait_until_ns(at_ns, margin) == 0;
}

// punctual_cycle_cancelled(), in the body of a task.
inline bool cancelled() noexcept { return punctual_cycle_cancelled() != 0; }

// What a wait learned.
using learned_bytes = std::array<unsigned char, PUNCTUAL_LEARNED_BYTES>;

// What this call gives; nothing where nothing was learned yet.
template <typename Call> std::optional<learned_bytes> learned_by(Call call) {
    learned_bytes bytes{};
    int given = call(bytes.data(), bytes.size());
    if (given == -ENODATA) {
        return std::nullopt;
    }
    check(given);
    return bytes;
}

// The text that this call copies, whole however long it is.
template <typename Call> std::string text_by(Call call) {
    std::string text(512, '\0');
    int copied;
    while ((copied = call(&text[0], text.size())) == -ERANGE) {
        text.resize(2 * text.size());
    }
    check(copied);
    text.resize(text.find('\0'));
    return text;
}

// punctual_options with its defaults; the fields are the struct's own.
struct options : punctual_options {
    options() : punctual_options() { check(punctual_options_init(this, sizeof(punctual_options))); }

    // Of this period.
    explicit options(period every) : options() {
        period_num_ns = every.num_ns();
        period_den = every.den();
    }

    // A period of num/den nanoseconds.
    options(std::uint64_t num_ns, std::uint64_t den) : options(period(num_ns, den)) {}

    // Has the wait begin with these bytes, which must outlive the making of the loop, or the run.
    void know(const learned_bytes &bytes) noexcept {
        learned = bytes.data();
        learned_size = bytes.size();
    }
};

// punctual_stats, empty.
inline punctual_stats empty_stats() {
    punctual_stats stats;
    check(punctual_stats_init(&stats, sizeof stats));
    return stats;
}

// What was asked for; nothing where there is none yet.
inline std::optional<std::int64_t> some(int answer, const std::int64_t &ns) {
    if (answer == -ENODATA) {
        return std::nullopt;
    }
    check(answer);
    return ns;
}

// The same as std::chrono has it.
inline std::optional<std::chrono::nanoseconds> as_duration(std::optional<std::int64_t> ns) {
    return ns ? std::optional(duration(*ns)) : std::nullopt;
}

// A clock that is followed: its get() is the `follow` of options.
class follow {
public:
    // punctual_follow_create() of TAI; period_ns as there.
    explicit follow(std::uint64_t period_ns = 0) {
        create(PUNCTUAL_REFERENCE_TAI, nullptr, period_ns);
    }

    // The same, of loops of a period in whole nanoseconds.
    explicit follow(std::chrono::nanoseconds every) : follow(span(every).ns()) {}

    // punctual_follow_create() of a PTP clock, as "/dev/ptp0".
    explicit follow(const char *device, span every = 0) {
        create(PUNCTUAL_REFERENCE_PTP, device, every);
    }

    // punctual_follow_status(), from any thread.
    punctual_follow_info status() const {
        punctual_follow_info info;
        check(punctual_follow_info_init(&info, sizeof info));
        check(punctual_follow_status(handle.get(), &info));
        return info;
    }

    punctual_follow *get() const noexcept { return handle.get(); }

private:
    void create(int reference, const char *device, std::uint64_t period_ns) {
        punctual_follow *made = nullptr;
        check(punctual_follow_create(&made, reference, device, period_ns));
        handle.reset(made);
    }

    struct destroy {
        void operator()(punctual_follow *of) const noexcept { punctual_follow_destroy(of); }
    };
    std::unique_ptr<punctual_follow, destroy> handle;
};

// A loop, of the thread that makes it; it must also die there, which ends it in silence: finish() says
// how it ended.
class loop {
public:
    // punctual_loop_create()
    explicit loop(const punctual_options &options) {
        punctual_loop *made = nullptr;
        check(punctual_loop_create(&made, &options));
        handle.reset(made);
        check(punctual_cycle_init(&cycle, sizeof cycle));
    }

    // punctual_loop_wait(): the next cycle, or null once it was stopped.
    const punctual_cycle *wait() noexcept {
        answer = punctual_loop_wait(handle.get(), &cycle);
        return answer == 0 ? &cycle : nullptr;
    }

    // What the last wait() answered: 0, -ECANCELED, -ETIMEDOUT, -EPERM.
    int last_answer() const noexcept { return answer; }

    // punctual_loop_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_loop_stop(handle.get()); }

    // punctual_loop_stopped(), from any thread; true where that fails, as in a child of fork(2).
    bool stopped() const noexcept {
        int is = 0;
        return punctual_loop_stopped(handle.get(), &is) != 0 || is != 0;
    }

    // punctual_loop_stats(), from any thread.
    punctual_stats stats() const {
        punctual_stats stats = empty_stats();
        check(punctual_loop_stats(handle.get(), &stats));
        return stats;
    }

    // punctual_loop_quantile_ns(), from any thread; nothing before the first cycle.
    std::optional<std::int64_t> quantile_ns(double share) const {
        std::int64_t ns = 0;
        return some(punctual_loop_quantile_ns(handle.get(), share, &ns), ns);
    }
    std::optional<std::chrono::nanoseconds> quantile(double share) const {
        return as_duration(quantile_ns(share));
    }

    // punctual_loop_stop(), and punctual_loop_destroy() once its last cycle is counted: what it did.
    // Throws where the watchdog ended it (ETIMEDOUT), and where its sample file is not whole (EIO); it
    // has ended all the same then, and is of no use any more, as after success. In another thread
    // than its own that is EPERM, and it goes on.
    punctual_stats finish() {
        wait_info(); // throws where this is not for this thread or process, or there is no loop
        stop();
        do {
            answer = punctual_loop_wait(handle.get(), nullptr);
        } while (answer == 0);
        error why(answer); // what follows has failures of its own
        if (answer != -ECANCELED && answer != -ETIMEDOUT) {
            throw why;
        }
        punctual_stats done = stats();
        int file = punctual_loop_destroy(handle.release());
        if (answer == -ETIMEDOUT) {
            throw why;
        }
        check(file);
        return done;
    }

    // punctual_loop_wait_info()
    punctual_wait_info wait_info() const {
        punctual_wait_info info;
        check(punctual_wait_info_init(&info, sizeof info));
        check(punctual_loop_wait_info(handle.get(), &info));
        return info;
    }

    // punctual_loop_learned(), for know() of the next start's options; nothing where it learned
    // nothing yet.
    std::optional<learned_bytes> learned() const {
        return learned_by([this](void *bytes, size_t size) {
            return punctual_loop_learned(handle.get(), bytes, size);
        });
    }

    // punctual_loop_refused()
    std::string refused() const {
        char text[512];
        int copied = punctual_loop_refused(handle.get(), text, sizeof text);
        if (copied != -ERANGE) {
            check(copied);
        }
        return text;
    }

    // punctual_loop_summary(): ends it, and it can be read as before.
    std::string summary() {
        return text_by([this](char *text, size_t size) {
            return punctual_loop_summary(handle.get(), text, size);
        });
    }

    punctual_loop *get() const noexcept { return handle.get(); }

private:
    struct destroy {
        void operator()(punctual_loop *loop) const noexcept { punctual_loop_destroy(loop); }
    };
    std::unique_ptr<punctual_loop, destroy> handle;
    punctual_cycle cycle{};
    int answer = 0;
};

// What a task does: returns PUNCTUAL_CONTINUE to go on, PUNCTUAL_BREAK, PUNCTUAL_STOP or -errno, as
// a punctual_task_fn does.
using body = std::function<int(const punctual_cycle &)>;

// A trigger or background work, as a punctual_wait_fn or a punctual_idle_fn.
using plain_body = std::function<int()>;

// punctual_task with its defaults and a period; name and body are given to add().
struct task : punctual_task {
    task() : punctual_task() { check(punctual_task_init(this, sizeof(punctual_task))); }

    explicit task(period every) : task() {
        period_num_ns = every.num_ns();
        period_den = every.den();
    }

    // A period of num/den nanoseconds.
    task(std::uint64_t num_ns, std::uint64_t den) : task(period(num_ns, den)) {}
};

// punctual_unit with its defaults; name, budget and body are given to add_unit().
struct unit : punctual_unit {
    unit() : punctual_unit() { check(punctual_unit_init(this, sizeof(punctual_unit))); }
};

// Many tasks. What a body throws ends the run, and is thrown again from run(). Any threads may add and
// remove while it runs, as with punctual_executive_add(): one whose call meets another's gets EBUSY.
class executive {
public:
    // punctual_executive_create()
    executive() {
        punctual_executive *made = nullptr;
        check(punctual_executive_create(&made));
        handle.reset(made);
    }

    // Bodies know where this lies.
    executive(const executive &) = delete;
    executive &operator=(const executive &) = delete;

    // punctual_executive_add(); the index of the task. Its name, run and data are set here.
    std::uint32_t add(const char *name, task with, body run) {
        entries own;
        return add(name, with, std::move(run), own);
    }

    // punctual_executive_add() of a task that a trigger releases, which must return once stopped()
    // says so.
    std::uint32_t add(const char *name, task with, plain_body wait, body run) {
        entries own;
        with.wait = &executive::call_plain;
        with.trigger_data = enter_plain(own, std::move(wait), -ECANCELED);
        return add(name, with, std::move(run), own);
    }

    // punctual_executive_add_unit(); the index of the unit. Its run and data are set here; no body
    // for a further unit of a task.
    std::uint32_t add_unit(const char *name, span budget, body run, unit with = unit()) {
        entries own;
        with.name = name;
        with.budget_ns = budget;
        if (run) {
            with.run = &executive::call;
            with.data = enter(own, std::move(run));
        }
        std::uint32_t index = 0;
        int answer = punctual_executive_add_unit(handle.get(), &with, &index);
        keep(answer, own, index);
        return index;
    }

    // punctual_executive_frame()
    void frame(period every) {
        check(punctual_executive_frame(handle.get(), every.num_ns(), every.den()));
    }
    void frame(std::uint64_t num_ns, std::uint64_t den) { frame(period(num_ns, den)); }

    // punctual_executive_schedule()
    void schedule() { check(punctual_executive_schedule(handle.get())); }

    // punctual_executive_idle(). Work that was set before is freed here.
    void idle(span slice, plain_body run) {
        entries own;
        void *data = enter_plain(own, std::move(run), PUNCTUAL_STOP);
        int answer = punctual_executive_idle(handle.get(), slice, &executive::call_plain, data);
        if (answer == 0) {
            std::lock_guard<std::mutex> locked(keeping);
            background.swap(own);
            return;
        }
        keep(answer, own, std::nullopt);
    }

    // punctual_executive_remove_counted(): what it did. Its body, and what triggers it, are freed
    // here.
    punctual_stats remove(std::uint32_t index) {
        punctual_stats done = empty_stats();
        check(punctual_executive_remove_counted(handle.get(), index, &done));
        entries gone; // freed unlocked: what they hold may come here
        std::lock_guard<std::mutex> locked(keeping);
        for (auto at = kept.begin(); at != kept.end();) {
            auto next = std::next(at);
            if (at->index == index) {
                gone.splice(gone.end(), kept, at);
            }
            at = next;
        }
        return done;
    }

    // punctual_executive_allow_overload()
    void allow_overload() { check(punctual_executive_allow_overload(handle.get())); }

    // punctual_executive_build()
    void build(const punctual_options &with = options()) {
        check(punctual_executive_build(handle.get(), &with));
    }

    // punctual_executive_run(). An exception of a body ends the run and is thrown from here.
    void run(const punctual_options &with, span time = 0) {
        thrown = nullptr;
        taken.clear();
        int answer = punctual_executive_run(handle.get(), &with, time);
        // All of its threads have ended.
        if (thrown) {
            std::rethrow_exception(thrown);
        }
        check(answer);
    }

    // punctual_executive_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_executive_stop(handle.get()); }

    // punctual_executive_stopped(), from any thread; true where that fails, as in a child of fork(2).
    bool stopped() const noexcept {
        int is = 0;
        return punctual_executive_stopped(handle.get(), &is) != 0 || is != 0;
    }

    // punctual_executive_task_stats(), from any thread.
    punctual_stats stats(std::uint32_t index) const {
        punctual_stats stats = empty_stats();
        check(punctual_executive_task_stats(handle.get(), index, &stats));
        return stats;
    }

    // punctual_executive_task_quantile_ns(), from any thread; nothing before the first cycle.
    std::optional<std::int64_t> quantile_ns(std::uint32_t index, double share) const {
        std::int64_t ns = 0;
        return some(punctual_executive_task_quantile_ns(handle.get(), index, share, &ns), ns);
    }
    std::optional<std::chrono::nanoseconds> quantile(std::uint32_t index, double share) const {
        return as_duration(quantile_ns(index, share));
    }

    // punctual_executive_task_layout()
    punctual_layout layout(std::uint32_t index) const {
        punctual_layout layout;
        check(punctual_layout_init(&layout, sizeof layout));
        check(punctual_executive_task_layout(handle.get(), index, &layout));
        return layout;
    }

    // punctual_executive_peak()
    std::uint64_t peak() const {
        std::uint64_t peak = 0;
        check(punctual_executive_peak(handle.get(), &peak));
        return peak;
    }

    // punctual_executive_warnings()
    std::string warnings() const { return text(punctual_executive_warnings); }

    // punctual_executive_wait_info()
    punctual_wait_info wait_info() const {
        punctual_wait_info info;
        check(punctual_wait_info_init(&info, sizeof info));
        check(punctual_executive_wait_info(handle.get(), &info));
        return info;
    }

    // punctual_executive_learned(), for know() of a later run's options; nothing where it learned
    // nothing, or no run has ended yet.
    std::optional<learned_bytes> learned() const {
        return learned_by([this](void *bytes, size_t size) {
            return punctual_executive_learned(handle.get(), bytes, size);
        });
    }

    // punctual_executive_refused()
    std::string refused() const { return text(punctual_executive_refused); }

    // punctual_executive_summary()
    std::string summary() const { return text(punctual_executive_summary); }

    punctual_executive *get() const noexcept { return handle.get(); }

private:
    // A body, or a trigger or background work and what that returns where it throws.
    struct entry {
        body run;
        plain_body plain;
        int otherwise;
        executive *of;
        std::optional<std::uint32_t> index; // of its task; none of background work
    };

    using entries = std::list<entry>; // their places do not change, be they handed on

    std::uint32_t add(const char *name, task with, body run, entries &own) {
        with.name = name;
        with.run = &executive::call;
        with.data = enter(own, std::move(run));
        std::uint32_t index = 0;
        int answer = punctual_executive_add(handle.get(), &with, &index);
        keep(answer, own, index);
        return index;
    }

    void *enter(entries &own, body run) {
        own.push_back({std::move(run), nullptr, PUNCTUAL_STOP, this, std::nullopt});
        return &own.back();
    }

    void *enter_plain(entries &own, plain_body run, int otherwise) {
        own.push_back({nullptr, std::move(run), otherwise, this, std::nullopt});
        return &own.back();
    }

    // Keeps what the library has now, and throws what failed: what it refused goes with `own`. After a
    // fault of the library's own it may have it. Locked for a moment and never over a call of the
    // library, which may wait for a loop, whose bodies may come here.
    void keep(int answer, entries &own, std::optional<std::uint32_t> index) {
        if (answer == 0 || answer == -ENOTRECOVERABLE) {
            std::lock_guard<std::mutex> locked(keeping);
            for (entry &each : own) {
                each.index = answer == 0 ? index : std::nullopt;
            }
            kept.splice(kept.end(), own);
        }
        check(answer);
    }

    // Nothing is thrown through the library, which could not bear it.
    template <typename Call> static int guarded(entry *that, Call run) noexcept {
        try {
            return run();
        } catch (...) {
            // The first, where several throw at once.
            if (!that->of->taken.test_and_set()) {
                that->of->thrown = std::current_exception();
            }
            return that->otherwise;
        }
    }

    static int call(void *data, const punctual_cycle *cycle) noexcept {
        entry *that = static_cast<entry *>(data);
        return guarded(that, [&] { return that->run(*cycle); });
    }

    static int call_plain(void *data) noexcept {
        entry *that = static_cast<entry *>(data);
        return guarded(that, [&] { return that->plain(); });
    }

    std::string text(int (*of)(const punctual_executive *, char *, std::size_t)) const {
        return text_by([&](char *to, size_t size) { return of(handle.get(), to, size); });
    }

    struct destroy {
        void operator()(punctual_executive *of) const noexcept { punctual_executive_destroy(of); }
    };
    std::mutex keeping;
    entries kept;       // under `keeping`
    entries background; // likewise: the work that is set
    std::exception_ptr thrown;
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
    std::unique_ptr<punctual_executive, destroy> handle;
};

// This process as a task of a supervisor's, of the thread that makes it; it must also die there.
class process {
public:
    // punctual_register(): with the supervisor that started this process.
    explicit process(const char *task = nullptr) {
        punctual_process *made = nullptr;
        check(punctual_register(&made, task));
        take(made);
    }

    // punctual_join(): with the running supervisor of that name.
    process(const char *supervisor, const char *task) {
        punctual_process *made = nullptr;
        check(punctual_join(&made, supervisor, task));
        take(made);
    }

    // punctual_wait(): the next cycle, or null once it is told to end or the supervisor is gone.
    const punctual_cycle *wait() noexcept {
        answer = punctual_wait(handle.get(), &cycle);
        return answer == 0 ? &cycle : nullptr;
    }

    // What the last wait() answered: 0, -ECANCELED, -EPIPE, -EPERM.
    int last_answer() const noexcept { return answer; }

    // punctual_cancelled()
    bool cancelled() const noexcept {
        int is = 0;
        return punctual_cancelled(handle.get(), &is) == 0 && is != 0;
    }

    // punctual_commit(): false where the output is shorter.
    template <typename T> bool commit(const T &value) noexcept {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes are what others read");
        return punctual_commit(handle.get(), &value, sizeof value) == 0;
    }

private:
    void take(punctual_process *made) {
        handle.reset(made);
        check(punctual_cycle_init(&cycle, sizeof cycle));
    }

    struct unregister {
        void operator()(punctual_process *of) const noexcept { punctual_unregister(of); }
    };
    std::unique_ptr<punctual_process, unregister> handle;
    punctual_cycle cycle{};
    int answer = 0;
};

// A task of a running supervisor, read from another process, by any threads.
class watch {
public:
    // punctual_watch_open()
    watch(const char *supervisor, const char *task) {
        punctual_watch *made = nullptr;
        check(punctual_watch_open(&made, supervisor, task));
        handle.reset(made);
    }

    // punctual_watch_stats()
    punctual_stats stats() const {
        punctual_stats stats = empty_stats();
        check(punctual_watch_stats(handle.get(), &stats));
        return stats;
    }

    // punctual_watch_quantile_ns(); nothing before the first cycle.
    std::optional<std::int64_t> quantile_ns(double share) const {
        std::int64_t ns = 0;
        return some(punctual_watch_quantile_ns(handle.get(), share, &ns), ns);
    }
    std::optional<std::chrono::nanoseconds> quantile(double share) const {
        return as_duration(quantile_ns(share));
    }

    // punctual_watch_output(): true for the task's own, false for the safe value.
    template <typename T> bool output(T &value) const {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes are what was committed");
        int whose = PUNCTUAL_OUTPUT_SAFE;
        check(punctual_watch_output(handle.get(), &value, sizeof value, &whose));
        return whose == PUNCTUAL_OUTPUT_TASK;
    }

    // punctual_watch_supervised()
    bool supervised() const {
        int runs = 0;
        check(punctual_watch_supervised(handle.get(), &runs));
        return runs != 0;
    }

    punctual_watch *get() const noexcept { return handle.get(); }

private:
    struct close {
        void operator()(punctual_watch *of) const noexcept { punctual_watch_close(of); }
    };
    std::unique_ptr<punctual_watch, close> handle;
};

} // namespace punctual

#endif // PUNCTUAL_HPP
