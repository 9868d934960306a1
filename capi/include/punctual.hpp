// punctual.hpp: punctual.h for C++17 and newer. Owners that clean up, and errors that are thrown.
//
// Header only, and thin: every function here says which of punctual.h it calls; units, ranges and
// real-time labels are those of that one. What allocates or throws here does so in setup only;
// wait(), stop() and now_ns() never throw.
#ifndef PUNCTUAL_HPP
#define PUNCTUAL_HPP

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
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

// punctual_cycle_cancelled(), in the body of a task.
inline bool cancelled() noexcept { return punctual_cycle_cancelled() != 0; }

// punctual_options with its defaults; the fields are the struct's own.
struct options : punctual_options {
    options() : punctual_options() { check(punctual_options_init(this, sizeof(punctual_options))); }

    // A period of num/den nanoseconds.
    explicit options(std::uint64_t num_ns, std::uint64_t den = 1) : options() {
        period_num_ns = num_ns;
        period_den = den;
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

// A loop, of the thread that makes it; it must also die there.
class loop {
public:
    // punctual_loop_create()
    explicit loop(const punctual_options &options) {
        punctual_loop *made = nullptr;
        check(punctual_loop_create(&made, &options));
        handle.reset(made);
        check(punctual_cycle_init(&cycle, sizeof cycle));
    }

    // punctual_loop_wait(): the next cycle, or null once it was told to stop.
    const punctual_cycle *wait() noexcept {
        answer = punctual_loop_wait(handle.get(), &cycle);
        return answer == 0 ? &cycle : nullptr;
    }

    // What the last wait() answered: 0, -ECANCELED, -ETIMEDOUT, -EPERM.
    int last_answer() const noexcept { return answer; }

    // punctual_loop_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_loop_stop(handle.get()); }

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

    // punctual_loop_wait_info()
    punctual_wait_info wait_info() const {
        punctual_wait_info info;
        check(punctual_wait_info_init(&info, sizeof info));
        check(punctual_loop_wait_info(handle.get(), &info));
        return info;
    }

    // punctual_loop_refused()
    std::string refused() const {
        char text[512];
        int answer = punctual_loop_refused(handle.get(), text, sizeof text);
        if (answer != -ERANGE) {
            check(answer);
        }
        return text;
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

// punctual_task with its defaults; name, period and body are given to add().
struct task : punctual_task {
    task() : punctual_task() { check(punctual_task_init(this, sizeof(punctual_task))); }
};

// What a task does: returns PUNCTUAL_CONTINUE to go on, PUNCTUAL_BREAK, PUNCTUAL_STOP or -errno, as
// a punctual_task_fn does.
using body = std::function<int(const punctual_cycle &)>;

// The bodies of tasks. What one throws ends the run, and is thrown again behind it.
class bodies {
public:
    bodies() = default;
    // A body knows where this lies.
    bodies(const bodies &) = delete;
    bodies &operator=(const bodies &) = delete;

    // What the library calls with data().
    static punctual_task_fn run() noexcept { return &bodies::call; }

    // Calls what data() gave; otherwise is what it says where that throws. Nothing is thrown through
    // the library, which could not bear it.
    static int guarded(void *data, const punctual_cycle *cycle, int otherwise) noexcept {
        entry *that = static_cast<entry *>(data);
        try {
            return that->kept(*cycle);
        } catch (...) {
            // The first, where several throw at once.
            if (!that->of->taken.test_and_set()) {
                that->of->thrown = std::current_exception();
            }
            return otherwise;
        }
    }

    // Keeps a body; what the library calls it with.
    void *data(body kept) {
        all.push_back({std::move(kept), this});
        return &all.back();
    }

    // A run begins.
    void begin() noexcept {
        thrown = nullptr;
        taken.clear();
    }

    // It is over: throws what a body has thrown. All of its threads have ended.
    void rethrow() const {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    }

private:
    struct entry {
        body kept;
        bodies *of;
    };

    static int call(void *data, const punctual_cycle *cycle) noexcept {
        return guarded(data, cycle, PUNCTUAL_STOP);
    }

    std::deque<entry> all; // their places do not change
    std::exception_ptr thrown;
    std::atomic_flag taken = ATOMIC_FLAG_INIT;
};

// An executive of many tasks.
class periodic {
public:
    // punctual_periodic_create()
    periodic() {
        punctual_periodic *made = nullptr;
        check(punctual_periodic_create(&made));
        handle.reset(made);
    }

    // punctual_periodic_add(); the index of the task. Its run and data are set here.
    std::uint32_t add(const char *name, std::uint64_t num_ns, std::uint64_t den, body run,
                      task with = task()) {
        with.name = name;
        with.period_num_ns = num_ns;
        with.period_den = den;
        with.run = bodies::run();
        with.data = kept.data(std::move(run));
        std::uint32_t index = 0;
        check(punctual_periodic_add(handle.get(), &with, &index));
        return index;
    }

    // punctual_periodic_remove(). Its body is kept as long as this.
    void remove(std::uint32_t index) { check(punctual_periodic_remove(handle.get(), index)); }

    // punctual_periodic_build()
    void build() { check(punctual_periodic_build(handle.get())); }

    // punctual_periodic_run(). An exception of a body ends the run and is thrown from here.
    void run(const punctual_options &options, std::uint64_t duration_ns = 0) {
        kept.begin();
        int answer = punctual_periodic_run(handle.get(), &options, duration_ns);
        kept.rethrow();
        check(answer);
    }

    // punctual_periodic_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_periodic_stop(handle.get()); }

    // punctual_periodic_task_stats(), from any thread.
    punctual_stats stats(std::uint32_t index) const {
        punctual_stats stats = empty_stats();
        check(punctual_periodic_task_stats(handle.get(), index, &stats));
        return stats;
    }

    // punctual_periodic_task_quantile_ns(), from any thread; nothing before the first cycle.
    std::optional<std::int64_t> quantile_ns(std::uint32_t index, double share) const {
        std::int64_t ns = 0;
        return some(punctual_periodic_task_quantile_ns(handle.get(), index, share, &ns), ns);
    }

    punctual_periodic *get() const noexcept { return handle.get(); }

private:
    friend class calendar;

    struct destroy {
        void operator()(punctual_periodic *of) const noexcept { punctual_periodic_destroy(of); }
    };
    bodies kept;
    std::unique_ptr<punctual_periodic, destroy> handle;
};

// punctual_unit with its defaults; name, budget and body are given to add().
struct unit : punctual_unit {
    unit() : punctual_unit() { check(punctual_unit_init(this, sizeof(punctual_unit))); }
};

// Units at fixed places of a frame.
class calendar {
public:
    // punctual_calendar_create()
    explicit calendar(std::uint64_t frame_ns) {
        punctual_calendar *made = nullptr;
        check(punctual_calendar_create(&made, frame_ns));
        handle.reset(made);
    }

    // punctual_calendar_add(); the index of the unit. Its run and data are set here; none for a
    // further unit of a task.
    std::uint32_t add(const char *name, std::uint64_t budget_ns, body run, unit with = unit()) {
        with.name = name;
        with.budget_ns = budget_ns;
        if (run) {
            with.run = bodies::run();
            with.data = kept.data(std::move(run));
        }
        std::uint32_t index = 0;
        check(punctual_calendar_add(handle.get(), &with, &index));
        return index;
    }

    // punctual_calendar_build()
    void build() { check(punctual_calendar_build(handle.get())); }

    // punctual_calendar_run(), alone. An exception of a body ends the run and is thrown from here.
    void run(const punctual_options &options, std::uint64_t duration_ns = 0) {
        kept.begin();
        int answer = punctual_calendar_run(handle.get(), nullptr, &options, duration_ns);
        kept.rethrow();
        check(answer);
    }

    // punctual_calendar_run(), with the tasks of an executive between the units.
    void run(periodic &beside, const punctual_options &options, std::uint64_t duration_ns = 0) {
        kept.begin();
        beside.kept.begin();
        int answer = punctual_calendar_run(handle.get(), beside.get(), &options, duration_ns);
        kept.rethrow();
        beside.kept.rethrow();
        check(answer);
    }

    // punctual_calendar_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_calendar_stop(handle.get()); }

    // punctual_calendar_task_stats(), from any thread.
    punctual_stats stats(std::uint32_t index) const {
        punctual_stats stats = empty_stats();
        check(punctual_calendar_task_stats(handle.get(), index, &stats));
        return stats;
    }

    // punctual_calendar_task_quantile_ns(), from any thread; nothing before the first unit.
    std::optional<std::int64_t> quantile_ns(std::uint32_t index, double share) const {
        std::int64_t ns = 0;
        return some(punctual_calendar_task_quantile_ns(handle.get(), index, share, &ns), ns);
    }

    // punctual_calendar_task_counts(), of a run that is over.
    punctual_unit_counts counts(std::uint32_t index) const {
        punctual_unit_counts counts;
        check(punctual_unit_counts_init(&counts, sizeof counts));
        check(punctual_calendar_task_counts(handle.get(), index, &counts));
        return counts;
    }

    punctual_calendar *get() const noexcept { return handle.get(); }

private:
    struct destroy {
        void operator()(punctual_calendar *of) const noexcept { punctual_calendar_destroy(of); }
    };
    bodies kept;
    std::unique_ptr<punctual_calendar, destroy> handle;
};

// Tasks that have a thread each.
class workers {
public:
    // What paces a task, as a punctual_source_fn does.
    using source = std::function<int()>;

    // punctual_workers_create()
    workers() {
        punctual_workers *made = nullptr;
        check(punctual_workers_create(&made));
        handle.reset(made);
    }

    // punctual_workers_add(); the index of the task. Its run and data are set here. The body is
    // called by the task's own thread.
    std::uint32_t add(const char *name, std::uint64_t num_ns, std::uint64_t den, body run,
                      task with = task()) {
        fill(with, name, num_ns, den);
        with.run = bodies::run();
        with.data = kept.data(std::move(run));
        std::uint32_t index = 0;
        check(punctual_workers_add(handle.get(), &with, &index));
        return index;
    }

    // punctual_workers_add_external(); the source is called by the task's own thread too, and must
    // come back once ending() says so.
    std::uint32_t add_external(const char *name, std::uint64_t num_ns, std::uint64_t den,
                               source paces, body run, task with = task()) {
        fill(with, name, num_ns, den);
        paced.push_back({kept.data(std::move(run)), kept.data(paced_by(std::move(paces)))});
        with.run = &workers::call;
        with.data = &paced.back();
        std::uint32_t index = 0;
        check(punctual_workers_add_external(handle.get(), &with, &workers::wait, &index));
        return index;
    }

    // punctual_workers_pin()
    void pin(std::int32_t cpu) { check(punctual_workers_pin(handle.get(), cpu)); }

    // punctual_workers_grace_ns()
    void grace_ns(std::uint64_t ns) { check(punctual_workers_grace_ns(handle.get(), ns)); }

    // punctual_workers_build()
    void build() { check(punctual_workers_build(handle.get())); }

    // punctual_workers_run(). An exception of a body ends the run and is thrown from here.
    void run(const punctual_options &options, std::uint64_t duration_ns = 0) {
        kept.begin();
        int answer = punctual_workers_run(handle.get(), &options, duration_ns);
        kept.rethrow();
        check(answer);
    }

    // punctual_workers_stop(), from any thread and from a signal handler.
    void stop() noexcept { punctual_workers_stop(handle.get()); }

    // punctual_workers_ending(), from any thread.
    bool ending() const noexcept {
        int is = 0;
        return punctual_workers_ending(handle.get(), &is) == 0 && is != 0;
    }

    // punctual_workers_task_stats(), from any thread.
    punctual_stats stats(std::uint32_t index) const {
        punctual_stats stats = empty_stats();
        check(punctual_workers_task_stats(handle.get(), index, &stats));
        return stats;
    }

    // punctual_workers_task_quantile_ns(), from any thread; nothing before the first cycle.
    std::optional<std::int64_t> quantile_ns(std::uint32_t index, double share) const {
        std::int64_t ns = 0;
        return some(punctual_workers_task_quantile_ns(handle.get(), index, share, &ns), ns);
    }

    // punctual_workers_task_outcome(), of a run that is over.
    punctual_worker_outcome outcome(std::uint32_t index) const {
        punctual_worker_outcome outcome;
        check(punctual_worker_outcome_init(&outcome, sizeof outcome));
        check(punctual_workers_task_outcome(handle.get(), index, &outcome));
        return outcome;
    }

    punctual_workers *get() const noexcept { return handle.get(); }

private:
    // What a paced task is called with: its body, and what paces it.
    struct pair {
        void *run;
        void *source;
    };

    static void fill(task &with, const char *name, std::uint64_t num_ns, std::uint64_t den) {
        with.name = name;
        with.period_num_ns = num_ns;
        with.period_den = den;
    }

    // A source is kept as a body is, so that what it throws is caught as well.
    static body paced_by(source paces) {
        return [paces = std::move(paces)](const punctual_cycle &) { return paces(); };
    }

    static int call(void *data, const punctual_cycle *cycle) noexcept {
        return bodies::guarded(static_cast<pair *>(data)->run, cycle, PUNCTUAL_STOP);
    }

    static int wait(void *data) noexcept {
        static const punctual_cycle none{};
        return bodies::guarded(static_cast<pair *>(data)->source, &none, -ECANCELED);
    }

    struct destroy {
        void operator()(punctual_workers *of) const noexcept { punctual_workers_destroy(of); }
    };
    bodies kept;
    std::deque<pair> paced; // their places do not change
    std::unique_ptr<punctual_workers, destroy> handle;
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
