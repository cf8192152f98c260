// SPDX-License-Identifier: GPL-2.0-only
/*
 * user: a UIO device whose interrupts come at a constant rate, for tests. See README.md.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/uio_driver.h>

static unsigned int irq = 6;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "interrupt line; must have no device (default 6)");

static unsigned int period_ns = 10000000;
module_param(period_ns, uint, 0644);
MODULE_PARM_DESC(period_ns, "time between two interrupts");

static bool waits;
module_param(waits, bool, 0644);
MODULE_PARM_DESC(waits, "no interrupt comes until a program has enabled it again after the last one");

static unsigned int made;
module_param(made, uint, 0444);
MODULE_PARM_DESC(made, "interrupts since the module was loaded");

static struct platform_device *parent;
static struct hrtimer timer;
static bool enabled;

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	if (!waits || READ_ONCE(enabled)) {
		WRITE_ONCE(enabled, false);
		if (!irq_inject_interrupt(irq))
			made++;
	}
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

static irqreturn_t on_interrupt(int line, struct uio_info *info)
{
	return IRQ_HANDLED;
}

static int enable(struct uio_info *info, s32 on)
{
	WRITE_ONCE(enabled, on);
	return 0;
}

static struct uio_info info = {
	.name = "user",
	.version = "1",
	.handler = on_interrupt,
	.irqcontrol = enable,
};

static int __init user_init(void)
{
	int error;

	parent = platform_device_register_simple("user", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	info.irq = irq;
	error = uio_register_device(&parent->dev, &info);
	if (error) {
		platform_device_unregister(parent);
		return error;
	}
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = on_timer;
	hrtimer_start(&timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_HARD);
	return 0;
}

static void __exit user_exit(void)
{
	hrtimer_cancel(&timer);
	uio_unregister_device(&info);
	platform_device_unregister(parent);
}

module_init(user_init);
module_exit(user_exit);
MODULE_DESCRIPTION("A UIO device with interrupts at a constant rate, for tests");
MODULE_LICENSE("GPL");
