/* A loop and an executive on threads of C's own, stopped and watched from another. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

static _Atomic(punctual_loop *) shared;
static atomic_int destroy_now;

static void *run_loop(void *unused)
{
    punctual_options options = plain(1000000);
    punctual_loop *loop;
    punctual_cycle cycle;
    uint64_t next = 0;
    int error;

    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    atomic_store(&shared, loop);
    while ((error = punctual_loop_wait(loop, &cycle)) == 0) {
        CHECK(cycle.n == next + cycle.missed);
        CHECK(cycle.next_ns > cycle.release_ns && (cycle.next_ns - cycle.release_ns) % 1000000 == 0);
        next = cycle.n + 1;
    }
    CHECK(error == -ECANCELED);
    while (!atomic_load(&destroy_now))
        punctual_wait_until_ns(punctual_now_ns() + 1000000, 0);
    CHECK(punctual_loop_destroy(loop) == 0);
    return unused;
}

static void watch_loop(void)
{
    punctual_loop *loop;
    punctual_stats stats;
    punctual_wait_info info;
    pthread_t thread;
    int64_t half_ns;

    CHECK(pthread_create(&thread, NULL, run_loop, NULL) == 0);
    while ((loop = atomic_load(&shared)) == NULL)
        punctual_wait_until_ns(punctual_now_ns() + 1000000, 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_loop_stats(loop, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(stats.min_ns >= 0 && stats.max_ns >= stats.min_ns && stats.last_cycle >= 19);
    CHECK(punctual_loop_quantile_ns(loop, 0.5, &half_ns) == 0);
    CHECK(punctual_loop_wait(loop, NULL) == -EPERM);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(punctual_loop_wait_info(loop, &info) == -EPERM);
    CHECK(punctual_loop_destroy(loop) == -EPERM);
    CHECK(punctual_loop_stop(loop) == 0);
    atomic_store(&destroy_now, 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

struct counts {
    atomic_uint ran;
    pthread_t caller;
};

static int count(void *data, const punctual_cycle *cycle)
{
    struct counts *counts = (struct counts *)data;

    counts->caller = pthread_self();
    atomic_fetch_add(&counts->ran, 1);
    return cycle->size == sizeof *cycle ? 0 : -EIO;
}

static void *run_periodic(void *data)
{
    punctual_options options = plain(0);

    CHECK(punctual_periodic_run((punctual_periodic *)data, &options, 0) == 0);
    return NULL;
}

static void watch_periodic(void)
{
    struct counts counts = {0, pthread_self()};
    punctual_periodic *periodic;
    punctual_stats stats;
    punctual_task task;
    pthread_t thread;

    CHECK(punctual_periodic_create(&periodic) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "count";
    task.run = count;
    task.data = &counts;
    task.period_num_ns = 1000000;
    CHECK(punctual_periodic_add(periodic, &task, NULL) == 0);
    CHECK(punctual_periodic_build(periodic) == 0);
    CHECK(pthread_create(&thread, NULL, run_periodic, periodic) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_periodic_task_stats(periodic, 0, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(punctual_periodic_run(periodic, NULL, 1) == -EBUSY);
    CHECK(punctual_periodic_destroy(periodic) == -EBUSY);
    CHECK(punctual_periodic_stop(periodic) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_equal(counts.caller, thread));
    CHECK(punctual_periodic_task_stats(periodic, 0, &stats) == 0);
    CHECK(stats.ran == atomic_load(&counts.ran));
    CHECK(punctual_periodic_destroy(periodic) == 0);
}

/* A task that must not be called once it is gone. */
struct guest {
    atomic_uint ran;
    atomic_int here;
};

static int visit(void *data, const punctual_cycle *cycle)
{
    struct guest *guest = (struct guest *)data;

    (void)cycle;
    CHECK(atomic_load(&guest->here));
    atomic_fetch_add(&guest->ran, 1);
    return PUNCTUAL_CONTINUE;
}

static int host(void *data, const punctual_cycle *cycle)
{
    uint64_t *next = (uint64_t *)data;

    /* Nobody who comes or goes costs it a release. */
    CHECK(*next == 0 || cycle->n == *next + cycle->missed);
    *next = cycle->n + 1;
    return PUNCTUAL_CONTINUE;
}

static void change_periodic(void)
{
    punctual_periodic *periodic;
    punctual_stats stats;
    punctual_task task;
    pthread_t thread;
    uint64_t next = 0;
    uint32_t index, last = 0;

    CHECK(punctual_periodic_create(&periodic) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "host";
    task.run = host;
    task.data = &next;
    task.period_num_ns = 1000000;
    CHECK(punctual_periodic_add(periodic, &task, NULL) == 0);
    CHECK(punctual_periodic_build(periodic) == 0);
    CHECK(pthread_create(&thread, NULL, run_periodic, periodic) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    for (int n = 0; n < 10; n++) {
        struct guest guest = {0, 1};
        task.name = "guest";
        task.run = visit;
        task.data = &guest;
        task.period_num_ns = n % 2 ? 700000 : 3000000;
        task.policy = n % 3 ? PUNCTUAL_POLICY_SKIP : PUNCTUAL_POLICY_TERMINATE;
        CHECK(punctual_periodic_add(periodic, &task, &index) == 0 && index == last + 1);
        CHECK(punctual_periodic_add(periodic, &task, NULL) == -EEXIST);
        last = index;
        do {
            CHECK(punctual_periodic_task_stats(periodic, index, &stats) == 0);
            CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
        } while (stats.ran < 3);
        CHECK(punctual_periodic_remove(periodic, index) == 0);
        atomic_store(&guest.here, 0);
        CHECK(punctual_periodic_task_stats(periodic, index, &stats) == -ENOENT);
        CHECK(punctual_periodic_remove(periodic, index) == -ENOENT);
        CHECK(atomic_load(&guest.ran) >= 3);
    }
    CHECK(punctual_periodic_stop(periodic) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_periodic_task_stats(periodic, 0, &stats) == 0 && stats.ran > 0);
    CHECK(punctual_periodic_destroy(periodic) == 0);
}

static void *run_calendar(void *data)
{
    punctual_options options = plain(0);

    CHECK(punctual_calendar_run((punctual_calendar *)data, NULL, &options, 0) == 0);
    return NULL;
}

static void watch_calendar(void)
{
    struct counts counts = {0, pthread_self()};
    punctual_calendar *calendar;
    punctual_unit_counts units;
    punctual_stats stats;
    punctual_unit unit;
    pthread_t thread;

    CHECK(punctual_calendar_create(&calendar, 1000000) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    unit.name = "count";
    unit.run = count;
    unit.data = &counts;
    unit.budget_ns = 1000;
    unit.deadline_ns = 1000000;
    CHECK(punctual_calendar_add(calendar, &unit, NULL) == 0);
    CHECK(punctual_calendar_build(calendar) == 0);
    CHECK(pthread_create(&thread, NULL, run_calendar, calendar) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do {
        CHECK(punctual_calendar_task_stats(calendar, 0, &stats) == 0);
    } while (stats.ran < 20);
    CHECK(punctual_unit_counts_init(&units, sizeof units) == 0);
    CHECK(punctual_calendar_task_counts(calendar, 0, &units) == -EBUSY);
    CHECK(punctual_calendar_run(calendar, NULL, NULL, 1) == -EBUSY);
    CHECK(punctual_calendar_destroy(calendar) == -EBUSY);
    CHECK(punctual_calendar_stop(calendar) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_equal(counts.caller, thread));
    CHECK(punctual_calendar_task_counts(calendar, 0, &units) == 0);
    CHECK(units.ran == atomic_load(&counts.ran));
    CHECK(punctual_calendar_destroy(calendar) == 0);
}

/* Of the device that paces "paced". */
static punctual_workers *all;
static pthread_t paced_by;

static int paces(void *data)
{
    int ending;

    (void)data;
    paced_by = pthread_self();
    CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
    CHECK(punctual_workers_ending(all, &ending) == 0);
    return !ending;
}

static void *run_workers(void *data)
{
    punctual_options options = plain(0);

    options.priority = 50;
    CHECK(punctual_workers_run((punctual_workers *)data, &options, 0) == 0);
    return NULL;
}

static void watch_workers(void)
{
    struct counts counts = {0, pthread_self()}, paced = {0, pthread_self()};
    punctual_worker_outcome outcome;
    punctual_stats stats, distances;
    punctual_task task;
    pthread_t thread;
    int ending;

    CHECK(punctual_workers_create(&all) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "count";
    task.run = count;
    task.data = &counts;
    task.period_num_ns = 1000000;
    CHECK(punctual_workers_add(all, &task, NULL) == 0);
    task.name = "paced";
    task.data = &paced;
    CHECK(punctual_workers_add_external(all, &task, paces, NULL) == 0);
    CHECK(punctual_workers_build(all) == 0);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_stats_init(&distances, sizeof distances) == 0);
    CHECK(punctual_workers_task_stats(all, 0, &stats) == 0 && stats.ran == 0);
    CHECK(pthread_create(&thread, NULL, run_workers, all) == 0);
    do {
        CHECK(punctual_workers_task_stats(all, 0, &stats) == 0);
        CHECK(punctual_workers_task_stats(all, 1, &distances) == 0);
        /* Where all threads share one CPU, as under valgrind, the others need it. */
        CHECK(punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0);
    } while (stats.ran < 20 || distances.ran < 5);
    CHECK(distances.min_ns >= 1000000 && distances.missed == 0);
    CHECK(punctual_workers_ending(all, &ending) == 0 && ending == 0);
    CHECK(punctual_worker_outcome_init(&outcome, sizeof outcome) == 0);
    CHECK(punctual_workers_task_outcome(all, 0, &outcome) == -EBUSY);
    CHECK(punctual_workers_run(all, NULL, 1) == -EBUSY);
    CHECK(punctual_workers_destroy(all) == -EBUSY);
    CHECK(punctual_workers_stop(all) == 0);
    CHECK(punctual_workers_ending(all, &ending) == 0 && ending == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(!pthread_equal(counts.caller, thread) && !pthread_equal(paced.caller, thread));
    CHECK(!pthread_equal(counts.caller, paced.caller) && pthread_equal(paced.caller, paced_by));
    CHECK(punctual_workers_task_stats(all, 0, &stats) == 0);
    CHECK(stats.ran == atomic_load(&counts.ran));
    CHECK(punctual_workers_task_outcome(all, 0, &outcome) == 0);
    CHECK(punctual_workers_destroy(all) == 0);
}

int main(void)
{
    watch_loop();
    watch_periodic();
    change_periodic();
    watch_calendar();
    watch_workers();
    return 0;
}
