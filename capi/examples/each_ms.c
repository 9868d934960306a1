/*
 * A loop of 1 kHz for so many seconds, and how it went: each_ms [SECONDS] [CPU]
 * Each cycle's lateness is in each_ms.punctual afterwards: punctual analyse each_ms.punctual
 *
 *     cc -std=c11 each_ms.c $(pkg-config --cflags --libs punctual) -o each_ms
 *
 * As root for numbers that a real-time loop would get. Ctrl-C ends it early.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

static punctual_loop *each_ms;

static void on_interrupt(int signal)
{
    (void)signal;
    punctual_loop_stop(each_ms); /* a stamp and a flag, no more */
}

static int report(void)
{
    static const double shares[] = {0.5, 0.99, 0.999};
    punctual_wait_info info;
    punctual_stats stats;
    char summary[4096];

    punctual_stats_init(&stats, sizeof stats);
    if (punctual_loop_stats(each_ms, &stats) != 0)
        return EXIT_FAILURE;
    punctual_wait_info_init(&info, sizeof info);
    if (punctual_loop_wait_info(each_ms, &info) == 0)
        printf("phase %" PRIu64 " ns, margin %" PRIu64 " ns, hop %" PRIu64
               " ns, %.1f %% of the CPU%s\n",
               info.phase_ns, info.margin_ns, info.hop_ns, 100.0 * info.cpu_share,
               info.reachable ? "" : ", aim out of reach");
    printf("%" PRIu64 " cycles, %" PRIu64 " missed\n", stats.ran, stats.missed);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        int64_t ns;
        if (punctual_loop_quantile_ns(each_ms, shares[i], &ns) == 0)
            printf("late by at most %" PRId64 " ns in a share of %g\n", ns, shares[i]);
    }
    printf("late by at most %" PRId64 " ns in all of them\n", stats.max_ns);
    if (punctual_loop_summary(each_ms, summary, sizeof summary) == 0)
        printf("%s\n", summary); /* the same in a line, how it ended, what the kernel refused */
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    uint64_t cycles = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000;
    double integral_s = 0.0;
    punctual_options options;
    punctual_cycle cycle;
    int error;

    punctual_options_init(&options, sizeof options);
    options.period_num_ns = 1000000;
    options.samples = "each_ms.punctual";
    if (argc > 2)
        options.cpu = atoi(argv[2]);
    error = punctual_loop_create(&each_ms, &options);
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", punctual_strerror(error), punctual_last_error());
        return EXIT_FAILURE;
    }
    signal(SIGINT, on_interrupt);

    punctual_cycle_init(&cycle, sizeof cycle);
    for (uint64_t n = 0; n < cycles && error == 0; n++) {
        error = punctual_loop_wait(each_ms, &cycle);
        if (error == 0)
            integral_s += (double)cycle.dt_ns / 1e9; /* the work: read, compute, write */
    }

    signal(SIGINT, SIG_DFL);
    printf("%.3f s of loop\n", integral_s);
    if (error != 0 && error != -ECANCELED)
        fprintf(stderr, "%s\n", punctual_strerror(error));
    error = report();
    if (punctual_loop_destroy(each_ms) != 0)
        fprintf(stderr, "%s\n", punctual_last_error());
    return error;
}
