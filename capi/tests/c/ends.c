/*
 * How loops end: which answers of destroying leave the handle, and which are its end; ends SAMPLES.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static punctual_loop *loop;
static volatile sig_atomic_t from_handler;

/* Where it interrupted a call of the loop, which another call says, it tries to destroy it. */
static void on_alarm(int signal)
{
    punctual_wait_info info;

    (void)signal;
    if (punctual_wait_info_init(&info, sizeof info) != 0)
        _exit(2);
    if (punctual_loop_wait_info(loop, &info) == -EBUSY)
        from_handler = punctual_loop_destroy(loop);
}

static void alarm_each_us(int us)
{
    struct itimerval each = {{0, us}, {0, us}};

    CHECK(setitimer(ITIMER_REAL, &each, NULL) == 0);
}

static void *elsewhere(void *unused)
{
    CHECK(punctual_loop_destroy(loop) == -EPERM);
    return unused;
}

static void a_loop_that_is_not_to_be_destroyed_goes_on(void)
{
    punctual_options options = plain(10000000);
    struct sigaction action;
    pthread_t thread;

    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(pthread_create(&thread, NULL, elsewhere, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    alarm_each_us(1000);
    do {
        CHECK(punctual_loop_wait(loop, NULL) == 0);
    } while (from_handler == 0);
    alarm_each_us(0);
    CHECK(from_handler == -EBUSY);
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_loop_destroy(loop) == 0);
}

/* The checker of memory sees that it is freed. */
static void a_loop_without_its_samples_is_gone_all_the_same(const char *samples)
{
    punctual_options options = plain(1000000);

    options.samples = samples;
    CHECK(punctual_loop_create(&loop, &options) == 0);
    do { /* what is there is written within a second */
        CHECK(punctual_loop_wait(loop, NULL) == 0);
    } while (unlink(samples) != 0);
    CHECK(punctual_loop_destroy(loop) == -EIO);
    CHECK(strstr(punctual_last_error(), samples) != NULL);
}

/* Each release before the stop ran or was missed; what no cycle followed is of the missed ones. */
static void all_releases_are_counted(void)
{
    punctual_options options = plain(1000000);
    uint64_t first_ns, before_ns, after_ns, all;
    punctual_cycle cycle;
    punctual_stats stats;

    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(punctual_loop_wait(loop, &cycle) == 0);
    first_ns = cycle.release_ns - cycle.n * 1000000;
    while (punctual_now_ns() < cycle.next_ns + 20000000)
        continue;
    before_ns = punctual_now_ns();
    CHECK(punctual_loop_stop(loop) == 0);
    after_ns = punctual_now_ns();
    CHECK(punctual_loop_wait(loop, NULL) == -ECANCELED);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_loop_stats(loop, &stats) == 0);
    all = stats.ran + stats.missed;
    CHECK(all >= (before_ns - first_ns) / 1000000 + 1);
    CHECK(all <= (after_ns - first_ns) / 1000000 + 1);
    CHECK(stats.censored >= 20 && stats.censored <= stats.missed);
    CHECK(punctual_loop_destroy(loop) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    a_loop_that_is_not_to_be_destroyed_goes_on();
    a_loop_without_its_samples_is_gone_all_the_same(argv[1]);
    all_releases_are_counted();
    return 0;
}
