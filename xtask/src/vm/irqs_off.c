// SPDX-License-Identifier: MIT
/*
 * Keeps interrupts off for a while: on CPU 1 again and again, in a thread of the kernel, and on the
 * CPU of whoever writes to the parameter take_us (take.h).
 * Loads in a virtual machine alone.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <asm/cpufeature.h>
#include "take.h"

static unsigned int length_us;
module_param(length_us, uint, 0);
MODULE_PARM_DESC(length_us, "how long on CPU 1, in [1, 50000] us; 0 for never");

static unsigned int every_ms = 90;
module_param(every_ms, uint, 0);
MODULE_PARM_DESC(every_ms, "the time between two, in [1, 1000] ms");

static struct task_struct *keeper;

static noinline void keep(unsigned int us, u64 *from_ns, u64 *to_ns)
{
	unsigned long flags;

	local_irq_save(flags);
	*from_ns = ktime_get_ns();
	do {
		cpu_relax();
		*to_ns = ktime_get_ns();
	} while (*to_ns < *from_ns + us * 1000ull);
	local_irq_restore(flags);
}

static int keep_again(void *unused)
{
	u64 from_ns, to_ns;

	while (!kthread_should_stop()) {
		keep(length_us, &from_ns, &to_ns);
		msleep(every_ms);
	}
	return 0;
}

static int take_for(unsigned int us)
{
	keep(us, &start_ns, &end_ns);
	return 0;
}

static int __init irqs_off_init(void)
{
	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return -ENODEV;
	if (length_us > LONGEST_US || every_ms < 1 || every_ms > 1000)
		return -EINVAL;
	if (!length_us)
		return 0;
	keeper = kthread_create(keep_again, NULL, "irqs-kept-off");
	if (IS_ERR(keeper))
		return PTR_ERR(keeper);
	kthread_bind(keeper, 1);
	wake_up_process(keeper);
	return 0;
}

static void __exit irqs_off_exit(void)
{
	if (keeper)
		kthread_stop(keeper);
}

module_init(irqs_off_init);
module_exit(irqs_off_exit);
MODULE_DESCRIPTION("keeps interrupts off");
MODULE_LICENSE("Dual MIT/GPL");
