// SPDX-License-Identifier: GPL-2.0-only
/*
 * hold: makes delays of known length and cause, for tests. See README.md for the commands.
 *
 * The kernel offers the interfaces used here only to GPL modules, so this file is licensed under the GPL, version 2. It
 * is not linked with the rest of the project, which is licensed MIT OR Apache-2.0.
 */
#include <linux/capability.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kfifo.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/swait.h>
#include <linux/uaccess.h>

#define MAX_HOLD_NS (50 * NSEC_PER_MSEC)	/* longest hold */
#define MAX_DELAY_NS (60 * NSEC_PER_SEC)	/* longest `after` */
#define WAITING 256			/* maximum number of queued holds */
#define LOGGED 1024			/* maximum number of holds in the log */
#define GAP_NS 2000			/* far longer than reading the clock takes */
#define GAPS 8				/* maximum number of logged gaps per hold */

static unsigned int irq = 7;
module_param(irq, uint, 0444);
MODULE_PARM_DESC(irq, "interrupt line for hold-source; must have no device (default 7)");

enum kind { IRQS, PREEMPT, HARDIRQ, THREAD, SOFTIRQ, KINDS };

static const char *const names[KINDS] = { "irqs", "preempt", "hardirq", "thread", "softirq" };

/* A queued hold. It waits for its timer and then in the list of its kind. */
struct hold {
	struct list_head at;
	struct hrtimer timer;
	enum kind kind;
	u64 ns;
};

/* A finished hold with its gaps: times in which something else had the CPU. */
struct done {
	u64 begin_ns, end_ns;
	enum kind kind;
	unsigned int cpu, gaps;
	struct { u64 begin_ns, end_ns; } gap[GAPS];
};

static DEFINE_RAW_SPINLOCK(lock);	/* protects the lists, the log and `lost` */
static struct hold pool[WAITING];
static LIST_HEAD(unused);
static struct list_head waiting[KINDS];
static DEFINE_KFIFO(log, struct done, LOGGED);
static unsigned long lost;
static DEFINE_MUTEX(reading);
static DECLARE_SWAIT_QUEUE_HEAD(wake);
static struct task_struct *worker;

static struct hold *pop(struct list_head *from)
{
	struct hold *hold;
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	hold = list_first_entry_or_null(from, struct hold, at);
	if (hold)
		list_del(&hold->at);
	raw_spin_unlock_irqrestore(&lock, flags);
	return hold;
}

static void push(struct list_head *to, struct hold *hold)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	list_add_tail(&hold->at, to);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static void note(const struct done *done)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	if (!kfifo_put(&log, *done))
		lost++;
	raw_spin_unlock_irqrestore(&lock, flags);
}

/* Something else had the CPU since the last reading of the clock. */
static void note_gap(struct done *done, u64 now_ns)
{
	if (done->gaps < GAPS) {
		done->gap[done->gaps].begin_ns = done->end_ns;
		done->gap[done->gaps].end_ns = now_ns;
	}
	done->gaps++;
}

/* Holds the current CPU. The begin is recorded inside the section, the end just before leaving it. */
static void spin(enum kind kind, u64 ns)
{
	struct done done = { .kind = kind };
	unsigned long flags = 0;
	u64 now_ns;

	if (kind == IRQS)
		local_irq_save(flags);
	else if (kind == PREEMPT)
		preempt_disable();

	done.cpu = raw_smp_processor_id();
	done.begin_ns = done.end_ns = ktime_get_ns();
	do {
		cpu_relax();
		now_ns = ktime_get_ns();
		if (now_ns - done.end_ns > GAP_NS)
			note_gap(&done, now_ns);
		done.end_ns = now_ns;
	} while (done.end_ns - done.begin_ns < ns);

	if (kind == IRQS)
		local_irq_restore(flags);
	else if (kind == PREEMPT)
		preempt_enable();
	note(&done);
}

/* Executes the next hold of this kind in the caller's context; returns false if there is none. */
static bool next(enum kind kind)
{
	struct hold *hold = pop(&waiting[kind]);

	if (!hold)
		return false;
	spin(kind, hold->ns);
	push(&unused, hold);
	return true;
}

static irqreturn_t on_interrupt(int line, void *module)
{
	while (next(HARDIRQ))
		;
	return list_empty(&waiting[THREAD]) ? IRQ_HANDLED : IRQ_WAKE_THREAD;
}

static irqreturn_t on_interrupt_thread(int line, void *module)
{
	while (next(THREAD))
		;
	return IRQ_HANDLED;
}

static void on_softirq(struct tasklet_struct *unused_here)
{
	while (next(SOFTIRQ))
		;
}
static DECLARE_TASKLET(tasklet, on_softirq);

static bool worker_has_work(void)
{
	return !list_empty(&waiting[IRQS]) || !list_empty(&waiting[PREEMPT]) || kthread_should_stop();
}

static int work(void *unused_here)
{
	while (!kthread_should_stop()) {
		swait_event_idle_exclusive(wake, worker_has_work());
		while (next(IRQS) || next(PREEMPT))
			;
	}
	return 0;
}

/*
 * Raises the line as a device would: the kernel sends the CPU the line's own vector. EBUSY means that an interrupt is
 * already pending; its handler will process the queued holds.
 */
static int raise_line(void)
{
	int error = irq_inject_interrupt(irq);

	return error == -EBUSY ? 0 : error;
}

/* Passes a hold to the context that executes it. Can be called from any context. */
static void dispatch(struct hold *hold)
{
	enum kind kind = hold->kind;

	push(&waiting[kind], hold);
	switch (kind) {
	case HARDIRQ:
	case THREAD:
		WARN_ON_ONCE(raise_line());
		break;
	case SOFTIRQ:
		tasklet_schedule(&tasklet);
		break;
	default:
		swake_up_one(&wake);
	}
}

static enum hrtimer_restart on_time(struct hrtimer *timer)
{
	dispatch(container_of(timer, struct hold, timer));
	return HRTIMER_NORESTART;
}

/* [after DELAY_NS] KIND NS */
static int execute(const char *text)
{
	u64 after_ns, ns;
	bool later = false;
	int kind, used = 0;
	char word[12];
	struct hold *hold;

	if (sscanf(text, "after %llu %n", &after_ns, &used) == 1) {
		later = true;
		text += used;
	}
	used = 0;
	if (sscanf(text, "%11s %llu %n", word, &ns, &used) != 2 || text[used])
		return -EINVAL;
	kind = match_string(names, KINDS, word);
	if (kind < 0)
		return -EINVAL;
	if (ns > MAX_HOLD_NS || (later && after_ns > MAX_DELAY_NS))
		return -ERANGE;

	if (!later && (kind == IRQS || kind == PREEMPT)) {
		spin(kind, ns);
		return 0;
	}
	hold = pop(&unused);
	if (!hold)
		return -EBUSY;
	hold->kind = kind;
	hold->ns = ns;
	if (later)	/* hard: the callback runs in the timer interrupt, also on PREEMPT_RT */
		hrtimer_start(&hold->timer, ns_to_ktime(after_ns), HRTIMER_MODE_REL_PINNED_HARD);
	else
		dispatch(hold);
	return 0;
}

static ssize_t hold_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char text[80];
	int error;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = '\0';
	error = execute(text);
	return error ?: size;
}

/* Formats the oldest hold of the log and removes it; returns the length, or 0 if the log is empty. */
static int take_line(char *text, size_t size)
{
	struct done done;
	unsigned long flags, lost_now = 0;
	unsigned int i;
	int length;
	bool any;

	raw_spin_lock_irqsave(&lock, flags);
	any = kfifo_get(&log, &done);
	if (!any)
		swap(lost, lost_now);
	raw_spin_unlock_irqrestore(&lock, flags);
	if (!any)
		return lost_now ? scnprintf(text, size, "lost %lu\n", lost_now) : 0;
	length = scnprintf(text, size, "%s %llu %llu %u %u", names[done.kind], done.begin_ns, done.end_ns, done.cpu,
			   done.gaps);
	for (i = 0; i < min(done.gaps, (unsigned int)GAPS); i++)
		length += scnprintf(text + length, size - length, " %llu %llu", done.gap[i].begin_ns, done.gap[i].end_ns);
	return length + scnprintf(text + length, size - length, "\n");
}

/* If a line does not fit into the buffer, the next read returns the rest. */
static ssize_t hold_read(struct file *file, char __user *to, size_t room, loff_t *at)
{
	static char line[512];
	static size_t line_size, line_sent;	/* protected by `reading`, like `line` */
	size_t part, sent = 0;
	bool fault = false;

	mutex_lock(&reading);
	while (sent < room && !fault) {
		if (line_sent == line_size) {
			line_size = take_line(line, sizeof(line));
			line_sent = 0;
			if (!line_size)
				break;
		}
		part = min(room - sent, line_size - line_sent);
		fault = copy_to_user(to + sent, line + line_sent, part);
		if (!fault) {
			sent += part;
			line_sent += part;
		}
	}
	mutex_unlock(&reading);
	return fault && !sent ? -EFAULT : sent;
}

static int hold_open(struct inode *inode, struct file *file)
{
	return capable(CAP_SYS_ADMIN) ? stream_open(inode, file) : -EPERM;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = hold_open,
	.read = hold_read,
	.write = hold_write,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hold",
	.fops = &operations,
	.mode = 0600,
};

static int __init hold_init(void)
{
	int error, i;

	for (i = 0; i < KINDS; i++)
		INIT_LIST_HEAD(&waiting[i]);
	for (i = 0; i < WAITING; i++) {
		hrtimer_init(&pool[i].timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		pool[i].timer.function = on_time;
		list_add_tail(&pool[i].at, &unused);
	}
	worker = kthread_run(work, NULL, "hold");
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	/* NO_THREAD: on PREEMPT_RT the handler still runs in hard-interrupt context; the thread executes THREAD holds. */
	error = request_threaded_irq(irq, on_interrupt, on_interrupt_thread, IRQF_NO_THREAD, "hold-source", pool);
	if (error) {
		pr_err("hold: line %u is in use: load with irq=N, a line without a device\n", irq);
		goto no_line;
	}
	error = raise_line();
	if (error) {
		pr_err("hold: cannot raise line %u: load with irq=N, an edge-triggered line\n", irq);
		goto no_device;
	}
	error = misc_register(&device);
	if (error)
		goto no_device;
	return 0;

no_device:
	free_irq(irq, pool);
no_line:
	kthread_stop(worker);
	return error;
}

static void __exit hold_exit(void)
{
	int i;

	misc_deregister(&device);
	for (i = 0; i < WAITING; i++)
		hrtimer_cancel(&pool[i].timer);
	free_irq(irq, pool);
	tasklet_kill(&tasklet);
	kthread_stop(worker);
}

module_init(hold_init);
module_exit(hold_exit);
MODULE_DESCRIPTION("Delays of known length and cause, for tests");
MODULE_LICENSE("GPL");
