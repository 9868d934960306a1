/*
 * Children of fork(2): what their parent created answers an error there and is left alone, what they
 * create themselves works, and the parent's goes on.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static punctual_loop *loop;
static punctual_executive *executive;
static punctual_follow *follow;
static pid_t in_body;

/* How a child ended that runs this. */
static int in_child(void (*run)(void))
{
    pid_t pid = fork();
    int status;

    CHECK(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Its child returns, which the parent's loop does too. */
static int forks_once(void *data, const punctual_cycle *cycle)
{
    (void)data;
    (void)cycle;
    if (in_body == 0)
        in_body = fork();
    return in_body < 0 ? PUNCTUAL_STOP : PUNCTUAL_CONTINUE;
}

static void use_what_is_not_its_own(void)
{
    punctual_options options = plain(1000000);
    punctual_options no_period = plain(0);
    punctual_executive *another;
    punctual_loop *own;
    punctual_stats stats;
    punctual_wait_info info;
    punctual_follow_info followed;
    punctual_task task;
    char text[8];
    int stopped;

    CHECK(punctual_loop_wait(loop, NULL) == -ECHILD);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    CHECK(punctual_loop_stats(loop, &stats) == -ECHILD);
    CHECK(punctual_wait_info_init(&info, sizeof info) == 0);
    CHECK(punctual_loop_wait_info(loop, &info) == -ECHILD);
    CHECK(punctual_loop_refused(loop, text, sizeof text) == -ECHILD);
    CHECK(punctual_loop_summary(loop, text, sizeof text) == -ECHILD);
    CHECK(punctual_loop_stop(loop) == -ECHILD);
    CHECK(punctual_loop_destroy(loop) == -ECHILD);
    CHECK(punctual_loop_wait(loop, NULL) == -ECHILD);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    CHECK(punctual_executive_add(executive, &task, NULL) == -ECHILD);
    CHECK(punctual_executive_run(executive, &no_period, 1000000) == -ECHILD);
    CHECK(punctual_executive_stopped(executive, &stopped) == -ECHILD);
    CHECK(punctual_executive_stop(executive) == -ECHILD);
    CHECK(punctual_executive_destroy(executive) == -ECHILD);
    CHECK(punctual_executive_stop(executive) == -ECHILD);
    CHECK(punctual_follow_info_init(&followed, sizeof followed) == 0);
    CHECK(punctual_follow_status(follow, &followed) == -ECHILD);
    CHECK(punctual_follow_destroy(follow) == -ECHILD);
    CHECK(punctual_follow_status(follow, &followed) == -ECHILD);
    options.follow = no_period.follow = follow;
    CHECK(punctual_loop_create(&own, &options) == -ECHILD && own == NULL);
    CHECK(punctual_executive_create(&another) == 0);
    task.name = "another";
    task.period_num_ns = 1000000;
    task.run = forks_once;
    CHECK(punctual_executive_add(another, &task, NULL) == 0);
    CHECK(punctual_executive_run(another, &no_period, 1000000) == -ECHILD);
    CHECK(punctual_executive_destroy(another) == 0);
    options.follow = NULL;
    CHECK(strcmp(punctual_strerror(-ECHILD), punctual_strerror(0)) != 0);
    /* Its own. */
    CHECK(punctual_loop_create(&own, &options) == 0);
    CHECK(punctual_loop_wait(own, NULL) == 0 && punctual_loop_wait(own, NULL) == 0);
    CHECK(punctual_loop_destroy(own) == 0);
}

int main(int argc, char **argv)
{
    punctual_options options = plain(1000000);
    punctual_options no_period = plain(0);
    punctual_task task;
    uint32_t index;
    int status;

    CHECK(argc == 2);
    options.samples = argv[1];
    CHECK(punctual_loop_create(&loop, &options) == 0);
    CHECK(punctual_loop_wait(loop, NULL) == 0 && punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_follow_create(&follow, PUNCTUAL_REFERENCE_TAI, NULL, 0) == 0);
    CHECK(punctual_executive_create(&executive) == 0);
    CHECK(punctual_task_init(&task, sizeof task) == 0);
    task.name = "forks";
    task.period_num_ns = 1000000;
    task.run = forks_once;
    CHECK(punctual_executive_add(executive, &task, &index) == 0);
    CHECK(in_child(use_what_is_not_its_own) == 0);

    /* The parent's go on. */
    CHECK(punctual_loop_wait(loop, NULL) == 0);
    CHECK(punctual_loop_destroy(loop) == 0);
    CHECK(punctual_executive_run(executive, &no_period, 20000000) == 0);
    CHECK(in_body > 0 && waitpid(in_body, &status, 0) == in_body);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    CHECK(punctual_executive_destroy(executive) == 0);
    CHECK(punctual_follow_destroy(follow) == 0);
    return 0;
}
