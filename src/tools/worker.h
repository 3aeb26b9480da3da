/*
 * A thread that runs the jobs it is handed, in order: a rank has one that does
 * what NCCL's service thread does and one that does what its progress thread
 * does.
 */
#ifndef FR_TOOLS_WORKER_H
#define FR_TOOLS_WORKER_H

struct fr_worker;

/* Return: 0 or -errno. */
typedef int (*fr_worker_fn)(void *arg);

/* Return: 0; -ENOMEM; -EAGAIN: no thread could be made. */
int fr_worker_start(const char *name, struct fr_worker **out);
/* Waits for the jobs that are queued. NULL is a no-op. */
void fr_worker_stop(struct fr_worker *worker);
/* Queues a job; waits only while the queue is full. Any thread. */
void fr_worker_post(struct fr_worker *worker, fr_worker_fn fn, void *arg);
/* Waits until the queue is empty and the thread idle. Return: the first result
 * that was not 0 since the last wait, else 0. */
int fr_worker_drain_wait(struct fr_worker *worker);
/* Both. */
int fr_worker_run_wait(struct fr_worker *worker, fr_worker_fn fn, void *arg);

#endif
