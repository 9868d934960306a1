/*
 * Between two waits, and in what else is called in a loop, the allocator is not: it is ours here.
 * getppid(2) marks where a loop begins and ends, for who watches the system calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *old);

static atomic_uint calls;
/* Those of this thread alone: beside a task's thread others are still setting up. */
static _Thread_local unsigned own_calls;

static void called(void)
{
    atomic_fetch_add(&calls, 1);
    own_calls++;
}

void *malloc(size_t size)
{
    called();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    called();
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    called();
    return __libc_realloc(old, size);
}

void free(void *old)
{
    called();
    __libc_free(old);
}

static unsigned before;

/*
 * A monitor may still be setting up beside them: of this thread alone. The first cycle takes note;
 * each later one compares; so many are the loop.
 */
static int body(void *data, const punctual_cycle *cycle)
{
    unsigned *ran = (unsigned *)data;

    if (++*ran == 1) {
        before = own_calls;
        getppid();
    }
    CHECK(own_calls == before);
    if (*ran == 50)
        getppid();
    return *ran == 50 || cycle->n == 0;
}

static void in_loop(int wait)
{
    punctual_options options = plain(1000000);
    punctual_wait_info info;
    punctual_cycle cycle;
    punctual_loop *loop;

    options.wait = wait;
    options.learn_first = 0;
    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(atomic_load(&calls) > 0); /* the counter counts */
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    getppid();
    before = atomic_load(&calls);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    for (int n = 0; n < 100; n++) {
        CHECK(punctual_loop_wait(loop, &cycle) == 0);
        CHECK(punctual_loop_wait_info(loop, &info) == 0);
        CHECK(punctual_loop_wait(loop, (punctual_cycle *)&(size_t){0}) == -EINVAL);
        CHECK(punctual_wait_until_ns(punctual_now_ns(), 0) == 0);
    }
    CHECK(punctual_loop_stop(loop) == 0);
    CHECK(punctual_loop_wait(loop, &cycle) == -ECANCELED);
    CHECK(punctual_strerror(-ECANCELED)[0] != '\0');
    CHECK(atomic_load(&calls) == before);
    getppid();
    CHECK(punctual_loop_destroy(loop) == 0);
}

static void in_tasks(int on_overrun)
{
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_task task;
    unsigned ran = 0;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "body";
    task.run = body;
    task.data = &ran;
    task.period_num_ns = 1000000;
    task.on_overrun = on_overrun;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(ran == 50);
    CHECK(punctual_executive_destroy(executive) == 0);
}

static int count(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    ++*(unsigned *)data;
    return punctual_cycle_cancelled() ? PUNCTUAL_BREAK : PUNCTUAL_CONTINUE;
}

/* Adds and removes a task for as long as there is one to be seen. */
static void *changes(void *data)
{
    punctual_executive *executive = (punctual_executive *)data;
    unsigned beside = 0;
    punctual_task task;
    uint32_t index;

    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "beside";
    task.run = count;
    task.data = &beside;
    task.period_num_ns = 3000000;
    for (int n = 0; n < 5; n++) {
        CHECK(punctual_executive_add(executive, &task, &index) == 0);
        CHECK(punctual_wait_until_ns(punctual_now_ns() + 5000000, 0) == 0);
        CHECK(punctual_executive_remove(executive, index) == 0);
    }
    CHECK(punctual_executive_stop(executive) == 0);
    return NULL;
}

/* From its first cycle to its last, whatever comes and goes beside it. */
static int steady(void *data, const punctual_cycle *cycle)
{
    unsigned *ran = (unsigned *)data;

    (void)cycle;
    if (++*ran == 1)
        before = own_calls;
    CHECK(own_calls == before);
    return PUNCTUAL_CONTINUE;
}

static void in_changes(void)
{
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_task task;
    pthread_t thread;
    unsigned ran = 0;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "steady";
    task.run = steady;
    task.data = &ran;
    task.period_num_ns = 1000000;
    CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, changes, executive) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && ran > 0);
    CHECK(punctual_executive_destroy(executive) == 0);
}

/* Alone, and with a task between the units. */
static void in_units(int together)
{
    punctual_options options = plain(0);
    punctual_executive *executive;
    unsigned ran = 0, beside = 0;
    punctual_task task;
    punctual_unit unit;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "beside";
    task.run = count;
    task.data = &beside;
    task.period_num_ns = 2000000;
    task.budget_ns = 1000;
    if (together)
        CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    CHECK(punctual_executive_frame(executive, 1000000, 1) == 0);
    CHECK(punctual_unit_init(&unit, sizeof unit) == 0);
    unit.name = "body";
    unit.run = body;
    unit.data = &ran;
    unit.budget_ns = 1000;
    unit.deadline_ns = 1000000;
    unit.on_overrun = PUNCTUAL_OVERRUN_TERMINATE;
    CHECK(punctual_executive_add_unit(executive, &unit, NULL) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(ran == 50);
    CHECK(punctual_executive_destroy(executive) == 0);
}

enum { THREADS = 3 };

/* How many of them had their cycles. */
static atomic_uint done;

/* As body(), in a thread of its own. */
static int in_own_thread(void *data, const punctual_cycle *cycle)
{
    unsigned *ran = (unsigned *)data;
    static _Thread_local unsigned before_these;

    (void)cycle;
    if (++*ran == 1) {
        before_these = own_calls;
        getppid();
    }
    if (*ran <= 50)
        CHECK(own_calls == before_these && !punctual_cycle_cancelled());
    if (*ran == 50) {
        getppid();
        atomic_fetch_add(&done, 1);
    }
    return atomic_load(&done) == THREADS ? PUNCTUAL_STOP : PUNCTUAL_CONTINUE;
}

static int device(void *data)
{
    return data != NULL && punctual_wait_until_ns(punctual_now_ns() + 1000000, 0) == 0;
}

static void in_threads(void)
{
    static const int on_overrun[THREADS] = {PUNCTUAL_OVERRUN_SKIP, PUNCTUAL_OVERRUN_DELAY};
    static const char *const names[THREADS] = {"released", "by itself", "triggered"};
    punctual_options options = plain(0);
    unsigned ran[THREADS] = {0};
    punctual_executive *executive;
    punctual_task task;

    options.priority = 50;
    CHECK(punctual_executive_create(&executive) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(punctual_task_init(&task, sizeof task) == 0);
        task.name = names[i];
        task.run = in_own_thread;
        task.data = &ran[i];
        task.place = PUNCTUAL_PLACE_THREAD;
        task.period_num_ns = 1000000;
        task.on_overrun = on_overrun[i];
        if (i == 2) {
            task.wait = device;
            task.trigger_data = &ran[i];
        }
        CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    }
    CHECK(punctual_executive_run(executive, &options, 0) == 0);
    CHECK(ran[0] >= 50 && ran[1] >= 50 && ran[2] >= 50);
    CHECK(punctual_executive_destroy(executive) == 0);
}

int main(void)
{
    in_loop(PUNCTUAL_WAIT_SLEEP);
    in_loop(PUNCTUAL_WAIT_FIXED);
    in_loop(PUNCTUAL_WAIT_REARM);
    in_loop(PUNCTUAL_WAIT_ADAPTIVE);
    in_tasks(PUNCTUAL_OVERRUN_SKIP);
    in_tasks(PUNCTUAL_OVERRUN_TERMINATE);
    in_changes();
    in_units(0);
    in_units(1);
    in_threads();
    return 0;
}
