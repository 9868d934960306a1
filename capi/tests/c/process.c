/*
 * A task of a supervisor: process MODE. Counts its cycles into its output; "leaves" unregisters
 * after five; "stays" tries to where it must not, and then does.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static punctual_process *interrupted;
static volatile sig_atomic_t from_handler;

/* Where it interrupted a call of the task, which another call says, it tries to leave. */
static void on_alarm(int signal)
{
    int cancelled;

    (void)signal;
    if (punctual_cancelled(interrupted, &cancelled) == -EBUSY)
        from_handler = punctual_unregister(interrupted);
}

static void alarm_each_us(int us)
{
    struct itimerval each = {{0, us}, {0, us}};

    CHECK(setitimer(ITIMER_REAL, &each, NULL) == 0);
}

/* What does not let go of the handle leaves the task as it is. */
static void stays(punctual_process *process)
{
    struct sigaction action;
    int status;
    pid_t pid;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    interrupted = process;
    alarm_each_us(500);
    do {
        CHECK(punctual_wait(process, NULL) == 0);
    } while (from_handler == 0);
    alarm_each_us(0);
    CHECK(from_handler == -EBUSY);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(punctual_unregister(process) == -ECHILD && punctual_wait(process, NULL) == -ECHILD
                  ? 0 : 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(punctual_wait(process, NULL) == 0);
}

static void *elsewhere(void *data)
{
    punctual_process *process = (punctual_process *)data;
    int cancelled;

    CHECK(punctual_wait(process, NULL) == -EPERM);
    CHECK(punctual_cancelled(process, &cancelled) == -EPERM);
    CHECK(punctual_commit(process, &cancelled, 1) == -EPERM);
    CHECK(punctual_unregister(process) == -EPERM);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "good";
    punctual_process *process, *again;
    punctual_cycle cycle;
    uint64_t ran = 0;
    pthread_t thread;
    int cancelled, error;

    CHECK(punctual_register(&process, "nobody") == -EINVAL && process == NULL);
    CHECK(punctual_register(&process, mode) == 0);
    CHECK(punctual_register(&again, NULL) == -EBUSY && again == NULL);
    CHECK(strstr(punctual_last_error(), "registered already") != NULL);
    CHECK(pthread_create(&thread, NULL, elsewhere, process) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(punctual_cycle_init(&cycle, sizeof cycle) == 0);
    while ((error = punctual_wait(process, &cycle)) == 0) {
        CHECK(cycle.next_ns > cycle.release_ns && (cycle.next_ns - cycle.release_ns) % 2000000 == 0);
        CHECK(punctual_cancelled(process, &cancelled) == 0 && cancelled == 0);
        ran++;
        CHECK(punctual_commit(process, &ran, sizeof ran) == 0);
        CHECK(punctual_commit(process, "123456789", 9) == -EMSGSIZE);
        CHECK(punctual_commit(process, NULL, 0) == -EINVAL);
        if (strcmp(mode, "leaves") == 0 && ran == 5)
            return -punctual_unregister(process);
        if (strcmp(mode, "stays") == 0 && ran == 5) {
            stays(process);
            return -punctual_unregister(process);
        }
    }
    CHECK(error == -ECANCELED && ran > 0);
    return -punctual_unregister(process);
}
