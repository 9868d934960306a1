/*
 * A loop of a millisecond on TAI, or on a PTP clock: follow [SECONDS] [/dev/ptp0]
 *
 *     cc -std=c11 follow.c $(pkg-config --cflags --libs punctual) -o follow
 *
 * Its releases are at whole milliseconds of that clock, on every machine that follows it too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

int main(int argc, char **argv)
{
    uint64_t cycles = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000, off = 0;
    const char *device = argc > 2 ? argv[2] : NULL;
    punctual_follow *follow = NULL;
    punctual_options options;
    punctual_loop *each_ms = NULL;
    punctual_follow_info info;
    punctual_cycle cycle;
    int error = punctual_follow_create(
        &follow, device != NULL ? PUNCTUAL_REFERENCE_PTP : PUNCTUAL_REFERENCE_TAI, device, 1000000);

    punctual_options_init(&options, sizeof options);
    options.period_num_ns = 1000000;
    options.follow = follow;
    if (error == 0)
        error = punctual_loop_create(&each_ms, &options);
    punctual_cycle_init(&cycle, sizeof cycle);
    for (uint64_t n = 0; n < cycles && error == 0; n++) {
        error = punctual_loop_wait(each_ms, &cycle);
        off += cycle.release_ns % 1000000 != 0;
    }
    if (error != 0) {
        fprintf(stderr, "%s: %s\n", punctual_strerror(error), punctual_last_error());
        return EXIT_FAILURE;
    }
    punctual_follow_info_init(&info, sizeof info);
    punctual_follow_status(follow, &info);
    printf("%" PRIu64 " of %" PRIu64 " releases off a whole millisecond, the last one at %" PRIu64
           " ns\n", off, cycles, cycle.release_ns);
    printf("drift %.1f ppb, phase %" PRId64 " ns, %" PRIu64 " steps\n", info.drift_ppb,
           info.phase_ns, info.steps);
    punctual_loop_destroy(each_ms);
    punctual_follow_destroy(follow);
    return EXIT_SUCCESS;
}
