/* The result type that NCCL and its plugins share. */
#ifndef FR_NCCL_ERR_H
#define FR_NCCL_ERR_H

/* A plugin must not answer with a value that its host is too old to know. */
typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6, /* hosts from 2.13.4 on */
	ncclInProgress = 7,  /* 2.14.3; means success to the net interface */
	ncclTimeout = 8,     /* 2.30 */
} ncclResult_t;

#endif
