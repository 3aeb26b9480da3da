/* How close this process is to its limit of descriptors. */
#ifndef FR_BASE_FILES_H
#define FR_BASE_FILES_H

struct fr_files {
	unsigned long long limit; /* ulimit -n */
	unsigned long long left;  /* that may still be opened under it */
};

/* Reads the list of open ones: for paths that report an error. Where that list
 * cannot be read because there is no descriptor for it, none is left.
 * Return: 0, or -errno where the kernel does not tell; @files is then zero. */
int fr_files_look(struct fr_files *files);

#endif
