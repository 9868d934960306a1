/* SPDX-License-Identifier: MIT */
/*
 * The parameters of a driver that takes CPUs away for a requested time, in a virtual machine alone:
 * who writes to take_us has take_for() called, one after the other; took has when that was, ns of
 * CLOCK_MONOTONIC.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>

/* The longest of them, us. */
#define LONGEST_US 50000

/* Takes them for so long, in [1, LONGEST_US] us; fills start_ns and end_ns, or returns an error. */
static int take_for(unsigned int us);

static DEFINE_MUTEX(one_by_one);
static u64 start_ns, end_ns;

static int take(const char *text, const struct kernel_param *param)
{
	unsigned int us;
	int failed = kstrtouint(text, 0, &us);

	if (failed)
		return failed;
	if (us < 1 || us > LONGEST_US)
		return -EINVAL;
	mutex_lock(&one_by_one);
	failed = take_for(us);
	mutex_unlock(&one_by_one);
	return failed;
}

static int took(char *text, const struct kernel_param *param)
{
	int length;

	mutex_lock(&one_by_one);
	length = sprintf(text, "%llu %llu\n", start_ns, end_ns);
	mutex_unlock(&one_by_one);
	return length;
}

static const struct kernel_param_ops take_ops = { .set = take };
module_param_cb(take_us, &take_ops, NULL, 0200);
MODULE_PARM_DESC(take_us, "takes CPUs away for so long, in [1, 50000] us");

static const struct kernel_param_ops took_ops = { .get = took };
module_param_cb(took, &took_ops, NULL, 0444);
MODULE_PARM_DESC(took, "from when to when that was, ns of CLOCK_MONOTONIC");
