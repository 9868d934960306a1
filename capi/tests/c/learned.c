/* What a loop learned is kept for the next start, which begins with it, or says why not. */
#include <errno.h>
#include <string.h>

#include "check.h"

/* A loop of this period, that learns in its first cycles unless it knows already. */
static punctual_loop *begin(uint64_t period_ns, const void *learned, size_t size)
{
    punctual_options options;
    punctual_loop *loop;

    CHECK(punctual_options_init(&options, sizeof options) == 0);
    options.period_num_ns = period_ns;
    options.phase = PUNCTUAL_PHASE_ZERO;
    /* Not of this test: what the machine refuses would stand before what is looked for. */
    options.priority = 0;
    options.lock_memory = options.hold_idle_states = 0;
    options.learn_first = 0;
    options.learned = learned;
    options.learned_size = size;
    CHECK(punctual_loop_create(&loop, &options) == 0);
    return loop;
}

static punctual_wait_info info_of(punctual_loop *loop)
{
    punctual_wait_info info;

    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(punctual_loop_wait_info(loop, &info) == 0);
    return info;
}

/* It learns anew, and says why. */
static void anew(uint64_t period_ns, const void *learned, size_t size, const char *why)
{
    punctual_loop *loop = begin(period_ns, learned, size);
    char text[256];

    CHECK(info_of(loop).calibrating == 1);
    CHECK(punctual_loop_refused(loop, text, sizeof text) == 0);
    CHECK(strncmp(text, "learned: ", 9) == 0 && strstr(text, why) != NULL);
    CHECK(punctual_loop_destroy(loop) == 0);
}

int main(void)
{
    unsigned char learned[PUNCTUAL_LEARNED_BYTES];
    punctual_loop *loop = begin(1000000, NULL, 0);
    char text[256];

    CHECK(punctual_loop_learned(loop, learned, sizeof learned) == -ENODATA);
    while (info_of(loop).calibrating == 1)
        CHECK(punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_loop_learned(loop, learned, sizeof learned) == 0);
    CHECK(punctual_loop_destroy(loop) == 0);

    loop = begin(1000000, learned, sizeof learned);
    CHECK(info_of(loop).calibrating == 0 && info_of(loop).extrapolated == 1);
    CHECK(punctual_loop_refused(loop, text, sizeof text) == 0 && text[0] == '\0');
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_loop_destroy(loop) == 0);

    anew(2000000, learned, sizeof learned, "for a period of 1000000 ns");
    anew(1000000, learned, sizeof learned - 1, "has 56 bytes, and this 55");
    learned[20] ^= 1;
    anew(1000000, learned, sizeof learned, "damaged");
    return 0;
}
