// SPDX-License-Identifier: MIT
/*
 * System management interrupts of all CPUs that take a requested time, in a guest of QEMU.
 *
 * Replaces the handlers in the memory of that mode: SeaBIOS moves the first CPU's to 0xa0000, behind
 * a window of the host bridge, and leaves the others' at 0x30000. The kernel must leave alone what
 * memmap=64K$0x30000 and memmap=4K$0x80000 take from it. Loads nowhere but on the bridge of QEMU's
 * machine `pc`.
 *
 * Write to the parameter take_us (take.h); took has when the first CPU was away.
 */
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/pci.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#include "take.h"

#define QEMU_VENDOR 0x1af4
/* SMRAM control (Intel 82441FX data sheet, 3.2.19). */
#define SMRAM 0x72
#define SMRAM_OPEN 0x4a
#define SMRAM_CLOSED 0x0a
#define SMRAM_LOCKED 0x10
/* The first instruction of the handlers. */
#define FIRST_ENTRY 0xa8000
#define OTHERS_ENTRY 0x38000
/* What the handlers read and write, one after the other. */
#define PAGE 0x80000
/* Interrupt command register: to all, delivered as a system management interrupt. */
#define APIC 0xfee00000
#define APIC_COMMAND 0x300
#define TO_ALL_AS_SMI 0x84200

struct taken {
	u64 begin;
	u64 end;
	u64 cycles;
	u64 count;
};

/*
 * It waits by the counter alone: a CPU that waited for another one would hold it up for good, where
 * that one waits for an answer. Code of 16 bits; the first instruction has where its words are.
 */
static const u8 handler[] = {
	0x66, 0xbb, 0x00, 0x00, 0x08, 0x00,	/*    mov $0x80000, %ebx */
	0x0f, 0x31,				/*    rdtsc */
	0x67, 0x66, 0x89, 0x03,			/*    mov %eax, (%ebx) */
	0x67, 0x66, 0x89, 0x53, 0x04,		/*    mov %edx, 4(%ebx) */
	0x66, 0x89, 0xc1,			/*    mov %eax, %ecx */
	0x66, 0x89, 0xd6,			/*    mov %edx, %esi */
	0x67, 0x66, 0x03, 0x4b, 0x10,		/*    add 16(%ebx), %ecx */
	0x67, 0x66, 0x13, 0x73, 0x14,		/*    adc 20(%ebx), %esi */
	0x0f, 0x31,				/* 1: rdtsc */
	0x66, 0x39, 0xf2,			/*    cmp %esi, %edx */
	0x72, 0xf9,				/*    jb 1b */
	0x77, 0x05,				/*    ja 2f */
	0x66, 0x39, 0xc8,			/*    cmp %ecx, %eax */
	0x72, 0xf2,				/*    jb 1b */
	0x67, 0x66, 0x89, 0x43, 0x08,		/* 2: mov %eax, 8(%ebx) */
	0x67, 0x66, 0x89, 0x53, 0x0c,		/*    mov %edx, 12(%ebx) */
	0x67, 0x66, 0xff, 0x43, 0x18,		/*    incl 24(%ebx) */
	0x0f, 0xaa,				/*    rsm */
};
#define WORDS_OPERAND 2

static struct taken __iomem *first, *others;
static void __iomem *apic;

static u64 clock_ns(u64 now_ns, u64 now, u64 at)
{
	return now_ns - div_u64((now - at) * 1000000, tsc_khz);
}

static int take_for(unsigned int us)
{
	u64 count, cycles, now, now_ns;
	unsigned long flags;

	/* Its file is there before the driver has begun, and until after it ended. */
	if (!apic)
		return -ENXIO;
	cycles = div_u64((u64)us * tsc_khz, 1000);
	writeq(cycles, &first->cycles);
	writeq(cycles, &others->cycles);
	count = readq(&first->count);
	writel(TO_ALL_AS_SMI, apic + APIC_COMMAND);
	/* This CPU was away itself, and the first one began and ended about then. */
	now_ns = ktime_get_ns();
	while (readq(&first->count) == count && ktime_get_ns() - now_ns < NSEC_PER_SEC)
		cpu_relax();
	if (readq(&first->count) == count)
		return -ETIMEDOUT;
	local_irq_save(flags);
	now = rdtsc_ordered();
	now_ns = ktime_get_ns();
	local_irq_restore(flags);
	start_ns = clock_ns(now_ns, now, readq(&first->begin));
	end_ns = clock_ns(now_ns, now, readq(&first->end));
	return 0;
}

static int replace(phys_addr_t entry, u32 words)
{
	void __iomem *code = ioremap(entry, sizeof(handler));

	if (!code)
		return -ENOMEM;
	memcpy_toio(code, handler, sizeof(handler));
	writel(words, code + WORDS_OPERAND);
	iounmap(code);
	return 0;
}

static int __init smi_init(void)
{
	struct pci_dev *bridge = pci_get_domain_bus_and_slot(0, 0, 0);
	void __iomem *registers;
	u8 control = 0;
	int failed;

	if (!bridge)
		return -ENODEV;
	pci_read_config_byte(bridge, SMRAM, &control);
	if (bridge->vendor != PCI_VENDOR_ID_INTEL || bridge->device != PCI_DEVICE_ID_INTEL_82441 ||
	    bridge->subsystem_vendor != QEMU_VENDOR || (control & SMRAM_LOCKED)) {
		pci_dev_put(bridge);
		return -ENODEV;
	}
	/* The kernel's own memory cannot be remapped so: where it was not left alone, this fails. */
	first = ioremap(PAGE, PAGE_SIZE);
	registers = ioremap(APIC, PAGE_SIZE);
	failed = first && registers ? replace(OTHERS_ENTRY, PAGE + sizeof(*first)) : -ENOMEM;
	if (!failed) {
		others = first + 1;
		memset_io(first, 0, 2 * sizeof(*first));
		pci_write_config_byte(bridge, SMRAM, SMRAM_OPEN);
		failed = replace(FIRST_ENTRY, PAGE);
		pci_write_config_byte(bridge, SMRAM, SMRAM_CLOSED);
	}
	pci_dev_put(bridge);
	if (failed) {
		if (registers)
			iounmap(registers);
		if (first)
			iounmap(first);
		return failed;
	}
	mutex_lock(&one_by_one);
	apic = registers;
	mutex_unlock(&one_by_one);
	return 0;
}

static void __exit smi_exit(void)
{
	mutex_lock(&one_by_one);
	iounmap(apic);
	iounmap(first);
	apic = NULL;
	mutex_unlock(&one_by_one);
}

module_init(smi_init);
module_exit(smi_exit);
MODULE_DESCRIPTION("system management interrupts that take long");
MODULE_LICENSE("Dual MIT/GPL");
