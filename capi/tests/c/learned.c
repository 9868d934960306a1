/*
 * What the wait of a loop or of an executive learned is kept for the next start, which begins with
 * it, or says why not.
 */
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

static int work(void *data, const punctual_cycle *cycle)
{
    (void)data;
    (void)cycle;
    return 0;
}

/* Runs tasks of 1 ms and 5 ms with what is known; whether its wait still learns. */
static uint32_t run(punctual_executive *executive, uint32_t learn_first, const void *learned)
{
    punctual_options options;
    punctual_wait_info info;

    CHECK(punctual_options_init(&options, sizeof options) == 0);
    options.phase = PUNCTUAL_PHASE_ZERO;
    options.priority = 0;
    options.lock_memory = options.hold_idle_states = 0;
    options.learn_first = learn_first;
    options.learned = learned;
    options.learned_size = learned == NULL ? 0 : PUNCTUAL_LEARNED_BYTES;
    CHECK(punctual_executive_run(executive, &options, 20000000) == 0);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(punctual_executive_wait_info(executive, &info) == 0);
    CHECK(info.moves == 0);
    return info.calibrating;
}

static void executives(void)
{
    unsigned char learned[PUNCTUAL_LEARNED_BYTES];
    char text[256];
    punctual_executive *executive;
    punctual_task task;

    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_executive_learned(executive, learned, sizeof learned) == -ENODATA);
    for (uint64_t ms = 1; ms <= 5; ms += 4) {
        CHECK(punctual_task_init(&task, sizeof task) == 0);
        task.name = ms == 1 ? "quick" : "slow";
        task.period_num_ns = ms * 1000000;
        task.run = work;
        CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    }
    CHECK(run(executive, 0, NULL) == 1);
    CHECK(punctual_executive_learned(executive, learned, sizeof learned) == -ENODATA);
    /* However loaded the machine is: what it has not learned before, it learns in the loop. */
    for (int tries = 0; tries < 200 && run(executive, 1, NULL) == 1; tries++) {
    }
    CHECK(punctual_executive_learned(executive, NULL, sizeof learned) == -EINVAL);
    CHECK(punctual_executive_learned(executive, learned, sizeof learned - 1) == -ERANGE);
    CHECK(punctual_executive_learned(executive, learned, sizeof learned) == 0);

    CHECK(run(executive, 0, learned) == 0);
    CHECK(punctual_executive_refused(executive, text, sizeof text) == 0);
    CHECK(text[0] == '\0');
    learned[20] ^= 1;
    CHECK(run(executive, 0, learned) == 1);
    CHECK(punctual_executive_refused(executive, text, sizeof text) == 0);
    CHECK(strncmp(text, "learned: ", 9) == 0);
    CHECK(punctual_executive_destroy(executive) == 0);
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
    executives();
    return 0;
}
