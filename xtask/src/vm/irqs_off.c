// SPDX-License-Identifier: MIT
/*
 * Keeps interrupts off on CPU 1 for a while, again and again, in a thread of the kernel.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>

static unsigned int length_us = 10000;
module_param(length_us, uint, 0);
MODULE_PARM_DESC(length_us, "how long, in [1, 50000] us");

static unsigned int every_ms = 90;
module_param(every_ms, uint, 0);
MODULE_PARM_DESC(every_ms, "the time between two, in [1, 1000] ms");

static struct task_struct *keeper;

static int keep(void *unused)
{
	while (!kthread_should_stop()) {
		unsigned long flags;
		u64 end_ns;

		local_irq_save(flags);
		end_ns = ktime_get_ns() + length_us * 1000ull;
		while (ktime_get_ns() < end_ns)
			cpu_relax();
		local_irq_restore(flags);
		msleep(every_ms);
	}
	return 0;
}

static int __init irqs_off_init(void)
{
	if (length_us < 1 || length_us > 50000 || every_ms < 1 || every_ms > 1000)
		return -EINVAL;
	keeper = kthread_create(keep, NULL, "irqs-kept-off");
	if (IS_ERR(keeper))
		return PTR_ERR(keeper);
	kthread_bind(keeper, 1);
	wake_up_process(keeper);
	return 0;
}

static void __exit irqs_off_exit(void)
{
	kthread_stop(keeper);
}

module_init(irqs_off_init);
module_exit(irqs_off_exit);
MODULE_DESCRIPTION("keeps interrupts off");
MODULE_LICENSE("Dual MIT/GPL");
