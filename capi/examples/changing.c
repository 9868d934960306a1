/*
 * Tasks that come and go beside one that keeps every release: changing
 *
 *     cc -std=c11 changing.c $(pkg-config --cflags --libs punctual) -pthread -o changing
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <punctual.h>

static punctual_executive *executive;

struct servo {
    uint64_t next, lost;
};

static int servo(void *data, const punctual_cycle *cycle)
{
    struct servo *state = data;

    state->lost += state->next != 0 && cycle->n != state->next + cycle->missed;
    state->next = cycle->n + 1;
    return PUNCTUAL_CONTINUE;
}

static int probe(void *data, const punctual_cycle *cycle)
{
    (void)cycle;
    ++*(uint64_t *)data;
    return PUNCTUAL_CONTINUE;
}

static int add(const char *name, punctual_task_fn run, void *data, uint64_t period_ns,
               uint32_t *index)
{
    punctual_task task;

    punctual_task_init(&task, sizeof task);
    task.name = name;
    task.run = run;
    task.data = data;
    task.period_num_ns = period_ns;
    return punctual_executive_add(executive, &task, index);
}

/* One probe after the other, each for 20 cycles, in a thread beside the loop. */
static void *change(void *data)
{
    static const uint64_t periods_ns[] = {2000000, 4000000, 8000000};
    uint64_t *probed = data;
    punctual_stats stats;
    uint32_t index;
    int stopped = 0;

    punctual_stats_init(&stats, sizeof stats);
    for (size_t i = 0; i < sizeof periods_ns / sizeof periods_ns[0]; i++) {
        if (add("probe", probe, probed, periods_ns[i], &index) != 0)
            break;
        do {
            punctual_wait_until_ns(punctual_now_ns() + 1000000, 0);
            punctual_executive_task_stats(executive, index, &stats);
            punctual_executive_stopped(executive, &stopped);
        } while (stats.ran < 20 && !stopped);
        printf("removed after %" PRIu64 " cycles\n", stats.ran);
        if (punctual_executive_remove(executive, index) != 0)
            break; /* once it returned, the probe is not called any more */
    }
    punctual_executive_stop(executive);
    return NULL;
}

int main(void)
{
    struct servo state = {0, 0};
    char summary[1024] = "";
    uint64_t probed = 0;
    pthread_t beside;

    if (punctual_executive_create(&executive) != 0 ||
        add("servo", servo, &state, 1000000, NULL) != 0 ||
        pthread_create(&beside, NULL, change, &probed) != 0)
        return EXIT_FAILURE;
    if (punctual_executive_run(executive, NULL, 0) == 0)
        punctual_executive_summary(executive, summary, sizeof summary);
    punctual_executive_stop(executive);
    pthread_join(beside, NULL);
    printf("%s\n%" PRIu64 " cycles of probes, %" PRIu64 " releases of the servo lost\n",
           summary[0] != 0 ? summary : punctual_last_error(), probed, state.lost);
    punctual_executive_destroy(executive);
    return summary[0] != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
