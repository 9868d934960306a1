/* Watches the tasks "good" and "empty" of a running supervisor: watch SUPERVISOR. C and C++. */
#include <errno.h>
#include <string.h>

#include "check.h"

#ifdef __cplusplus
#include <punctual.hpp>

static void as_cpp(const char *supervisor)
{
    punctual::watch good(supervisor, "good");
    std::uint64_t ran = 0;

    CHECK(good.output(ran) && ran > 0 && good.supervised());
    CHECK(good.stats().ran >= 5 && good.quantile_ns(0.5));
    CHECK(!punctual::watch(supervisor, "empty").output(ran) && ran == UINT64_MAX);
    CHECK(!punctual::watch(supervisor, "empty").quantile_ns(0.5));
}
#else
static void as_cpp(const char *supervisor)
{
    CHECK(supervisor != NULL);
}
#endif

static void a_task_that_runs(const char *supervisor)
{
    uint64_t num_ns, den, ran;
    punctual_watch *watch;
    punctual_stats stats;
    int whose, error, runs = 0;
    char nine[9];
    int64_t ns;
    size_t size;

    CHECK(punctual_watch_open(&watch, supervisor, "good") == 0);
    CHECK(punctual_watch_period(watch, &num_ns, &den) == 0 && num_ns / den == 2000000);
    CHECK(punctual_stats_init(&stats, sizeof stats) == 0);
    do { /* it ends by itself where its task does not run */
        CHECK(punctual_watch_stats(watch, &stats) == 0);
        CHECK(stats.ran > 0 || punctual_watch_supervised(watch, &runs) != 0 || runs == 1);
    } while (stats.ran < 5);
    CHECK(stats.max_ns >= stats.min_ns && stats.forced == 0);
    CHECK(punctual_watch_quantile_ns(watch, 0.5, &ns) == 0 && ns >= 0);
    CHECK(punctual_watch_quantile_ns(watch, 1.5, &ns) == -EINVAL);
    CHECK(punctual_watch_output_size(watch, &size) == 0 && size == sizeof ran);
    CHECK(punctual_watch_output(watch, nine, sizeof nine, NULL) == -EMSGSIZE);
    CHECK(punctual_watch_output(watch, NULL, 0, NULL) == -EINVAL);
    while ((error = punctual_watch_output(watch, &ran, sizeof ran, &whose)) == -EAGAIN)
        continue;
    CHECK(error == 0 && whose == PUNCTUAL_OUTPUT_TASK && ran >= 4);
    CHECK(punctual_watch_supervised(watch, &runs) == 0 && runs == 1);
    stats.size = 3;
    CHECK(punctual_watch_stats(watch, &stats) == -EINVAL);
    CHECK(punctual_watch_close(watch) == 0);
}

static void a_task_that_is_not_there(const char *supervisor)
{
    punctual_watch *watch;
    uint64_t safe = 0;
    int64_t ns;
    int whose;

    CHECK(punctual_watch_open(&watch, supervisor, "empty") == 0);
    CHECK(punctual_watch_quantile_ns(watch, 0.5, &ns) == -ENODATA);
    CHECK(punctual_watch_output(watch, &safe, sizeof safe, &whose) == 0);
    CHECK(whose == PUNCTUAL_OUTPUT_SAFE && safe == UINT64_MAX);
    CHECK(punctual_watch_close(watch) == 0);
}

int main(int argc, char **argv)
{
    uint64_t until_ns = punctual_now_ns() + (uint64_t)60 * 1000000000;
    punctual_watch *watch;

    CHECK(argc == 2);
    do { /* it may be about to start */
        CHECK(punctual_watch_open(&watch, argv[1], "nobody") < 0 && watch == NULL);
        CHECK(punctual_now_ns() < until_ns);
    } while (strstr(punctual_last_error(), "no task of this name") == NULL);
    CHECK(punctual_watch_open(&watch, argv[1], "nobody") == -ECONNREFUSED);
    a_task_that_runs(argv[1]);
    a_task_that_is_not_there(argv[1]);
    as_cpp(argv[1]);
    return 0;
}
