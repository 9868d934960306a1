/* More tasks in threads of their own than there may be threads: refused, and nothing is left. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { TASKS = 100, MOST = 20, NOBODY = 65534 };

static int body(void *data, const punctual_cycle *cycle)
{
    (void)data;
    (void)cycle;
    CHECK(!"nothing runs");
    return 0;
}

int main(void)
{
    struct rlimit most = {MOST, MOST};
    punctual_options options = plain(0);
    punctual_executive *executive;
    punctual_stats stats;
    punctual_task task;
    char name[16];

    CHECK(punctual_executive_create(&executive) == 0);
    for (int i = 0; i < TASKS; i++) {
        CHECK(punctual_task_init(&task, sizeof task) == 0);
        snprintf(name, sizeof name, "task %d", i);
        task.name = name;
        task.run = body;
        task.period_num_ns = 10000000;
        task.place = PUNCTUAL_PLACE_THREAD;
        CHECK(punctual_executive_add(executive, &task, NULL) == 0);
    }
    CHECK(punctual_executive_build(executive, &options) == 0);
    options.priority = 50;
    /* The limit holds for nobody that is root; of others it counts all that they have. */
    CHECK(setrlimit(RLIMIT_NPROC, &most) == 0);
    CHECK(getuid() != 0 || setuid(NOBODY) == 0);
    CHECK(punctual_executive_run(executive, &options, 0) == -EAGAIN);
    CHECK(strstr(punctual_last_error(), "cannot start thread \"punctual-") != NULL);
    CHECK(strstr(punctual_last_error(), "RLIMIT_NPROC") != NULL);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_executive_task_stats(executive, 0, &stats) == 0 && stats.ran == 0);
    CHECK(punctual_executive_destroy(executive) == 0);
    return 0;
}
