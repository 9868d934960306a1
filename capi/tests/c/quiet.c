/*
 * Between two waits, and in what else is called in a loop, the allocator is not: it is ours here.
 * getppid(2) marks where a loop begins and ends, for who watches the system calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *old);

static atomic_uint calls;

void *malloc(size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(old, size);
}

void free(void *old)
{
    atomic_fetch_add(&calls, 1);
    __libc_free(old);
}

static unsigned before;

/* The first cycle takes note; each later one compares; so many are the loop. */
static int body(void *data, const punctual_cycle *cycle)
{
    unsigned *ran = (unsigned *)data;

    if (++*ran == 1) {
        before = atomic_load(&calls);
        getppid();
    }
    CHECK(atomic_load(&calls) == before);
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
    options.rehearse = 0;
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

static void in_tasks(void)
{
    punctual_options options = plain(0);
    punctual_periodic *periodic;
    punctual_task task;
    unsigned ran = 0;

    CHECK(punctual_periodic_create(&periodic) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "body";
    task.run = body;
    task.data = &ran;
    task.period_num_ns = 1000000;
    CHECK(punctual_periodic_add(periodic, &task, NULL) == 0);
    CHECK(punctual_periodic_build(periodic) == 0);
    CHECK(punctual_periodic_run(periodic, &options, 0) == 0);
    CHECK(ran == 50);
    CHECK(punctual_periodic_destroy(periodic) == 0);
}

int main(void)
{
    in_loop(PUNCTUAL_WAIT_SLEEP);
    in_loop(PUNCTUAL_WAIT_FIXED);
    in_loop(PUNCTUAL_WAIT_REARM);
    in_loop(PUNCTUAL_WAIT_ADAPTIVE);
    in_tasks();
    return 0;
}
