/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's user API as far as the simulation has it. */
#ifndef NPUSIM_ABI_ASCEND_HAL_H
#define NPUSIM_ABI_ASCEND_HAL_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef int drvError_t;
#define DRV_ERROR_NONE 0
#define DRV_ERROR_NO_DEVICE 1
#define DRV_ERROR_INVALID_DEVICE 2
#define DRV_ERROR_INVALID_VALUE 3
#define DRV_ERROR_INVALID_HANDLE 4
#define DRV_ERROR_OUT_OF_MEMORY 6
#define DRV_ERROR_NO_RESOURCES 9
#define DRV_ERROR_WAIT_TIMEOUT 16
#define DRV_ERROR_NOT_SUPPORT 0xfffe
#define DRV_ERROR_DEVICE_NOT_READY 35 /* after a reset, until it is opened again */

/* Submission queues. */

struct halSqCqInputInfo {
	uint32_t type, tsId;
	uint32_t sqeSize, cqeSize, sqeDepth, cqeDepth;
	uint32_t grpId, flag, cqId, sqId;
	uint32_t info[5]; /* [0] stream id, [1] tid */
	uint32_t ext_info_len;
	void *ext_info;
	uint32_t res[6];
};

struct halSqCqOutputInfo {
	uint32_t sqId, cqId;
	uint64_t queueVAddr;
	uint32_t flag;
	uint32_t res[5];
};

struct halSqCqFreeInfo {
	uint32_t type, tsId, sqId, cqId, flag;
	uint32_t res[3];
};

enum { DRV_SQCQ_PROP_SQ_STATUS, DRV_SQCQ_PROP_SQ_HEAD, DRV_SQCQ_PROP_SQ_TAIL };

struct halSqCqQueryInfo {
	uint32_t type, tsId, sqId, cqId;
	uint32_t prop;
	uint32_t value[8];
};

struct halTaskSendInfo {
	int32_t type;
	uint32_t tsId, sqId;
	int32_t timeout;
	uint8_t *sqe_addr;
	uint32_t sqe_num;
	uint32_t pos;
	uint32_t res[8];
};

enum { DRV_NORMAL_TYPE, DRV_CALLBACK_TYPE, DRV_LOGIC_TYPE };

struct halReportRecvInfo {
	uint32_t type, tsId, cqId;
	int32_t timeout;
	uint8_t *cqe_addr;
	uint32_t cqe_num, report_cqe_num, stream_id, task_id;
	uint32_t res[8];
};

/* What the driver makes of the device's CQE and puts into a queue of type DRV_LOGIC_TYPE. */
struct logic_cqe {
	uint16_t stream, task;
	uint32_t error_code;
	uint8_t error_type, sqe_type;
	uint16_t sq_id, sq_head;
	uint16_t flags; /* match, drop, error, acc_error: none of them here */
	union {
		uint64_t syscnt; /* of recorded events and placeholders */
		uint16_t sqe_index; /* of others */
	};
	uint64_t reserved;
};

_Static_assert(sizeof(struct halSqCqInputInfo) == 96, "ABI");
_Static_assert(sizeof(struct halTaskSendInfo) == 64, "ABI");
_Static_assert(sizeof(struct halReportRecvInfo) == 72, "ABI");
_Static_assert(sizeof(struct logic_cqe) == 32, "ABI");

drvError_t halSqCqAllocate(uint32_t devId, struct halSqCqInputInfo *in, struct halSqCqOutputInfo *out);
drvError_t halSqCqFree(uint32_t devId, struct halSqCqFreeInfo *info);
drvError_t halSqCqQuery(uint32_t devId, struct halSqCqQueryInfo *info);
drvError_t halSqTaskSend(uint32_t devId, struct halTaskSendInfo *info);
drvError_t halCqReportRecv(uint32_t devId, struct halReportRecvInfo *info);

/* The driver exports such internals too: waits until `count` SQEs are done. */
drvError_t sqcq_wait_done(uint32_t devId, uint32_t sqId, uint64_t count, int32_t timeout_ms);

/* Ids of streams, events and notifies. */

enum { DRV_STREAM_ID, DRV_EVENT_ID, DRV_MODEL_ID, DRV_NOTIFY_ID };

struct halResourceIdInputInfo {
	uint32_t type, tsId, resourceId;
	uint32_t res[3];
};

struct halResourceIdOutputInfo {
	uint32_t resourceId;
	uint32_t res[5];
};

drvError_t halResourceIdAlloc(uint32_t devId, struct halResourceIdInputInfo *in,
			      struct halResourceIdOutputInfo *out);
drvError_t halResourceIdFree(uint32_t devId, struct halResourceIdInputInfo *in);

/* Devices. */

typedef struct {
	uint32_t rsv[16];
} halDevOpenIn, halDevOpenOut;

typedef struct {
	char type[32], name[32], version[32];
} halChipInfo;

enum { MODULE_TYPE_SYSTEM = 0, MODULE_TYPE_AICPU = 1, MODULE_TYPE_AICORE = 4, MODULE_TYPE_VECTOR_CORE = 7 };
enum {
	INFO_TYPE_VERSION = 1,
	INFO_TYPE_CORE_NUM = 3,
	INFO_TYPE_FREQUE = 4,
	INFO_TYPE_SYS_COUNT = 13,
	INFO_TYPE_MONOTONIC_RAW = 14,
	INFO_TYPE_PHY_CHIP_ID = 18,
	INFO_TYPE_PHY_DIE_ID = 19,
	INFO_TYPE_UTILIZATION = 23,
	INFO_TYPE_HOST_OSC_FREQUE = 24,
	INFO_TYPE_DEV_OSC_FREQUE = 25,
};

drvError_t halDeviceOpen(uint32_t devid, halDevOpenIn *in, halDevOpenOut *out);
drvError_t halDeviceClose(uint32_t devid, void *in);
drvError_t drvDeviceOpen(void **devInfo, uint32_t devId);
drvError_t drvDeviceClose(uint32_t devId);
drvError_t drvGetDevNum(uint32_t *num);
drvError_t drvGetDevIDs(uint32_t *ids, uint32_t len);
drvError_t drvGetPlatformInfo(uint32_t *info);
drvError_t drvDeviceGetPhyIdByIndex(uint32_t index, uint32_t *phyId);
drvError_t drvDeviceStatus(uint32_t devId, int *status);
int drvDeviceGetBareTgid(void);
drvError_t halGetAPIVersion(int *version);
drvError_t halGetChipInfo(unsigned int devId, halChipInfo *info);
drvError_t halGetSocVersion(uint32_t devId, char *version, uint32_t len);
drvError_t halGetDeviceInfo(uint32_t devId, int32_t moduleType, int32_t infoType, int64_t *value);

/* Memory. */

#define MEM_DEVID(flag) ((uint32_t)((flag)&0x3ff))
#define MEM_KIND(flag) ((uint32_t)(((flag) >> 10) & 0xf))
#define MEM_FLAG(dev, kind) ((unsigned long long)(dev) | (unsigned long long)(kind) << 10)
enum { MEM_KIND_SVM, MEM_KIND_DEV, MEM_KIND_HOST };
#define MEM_PHY_HBM (1ull << 14)
#define MEM_PAGE_HUGE (1ull << 17)

typedef struct drv_mem_handle drv_mem_handle_t;
struct drv_mem_prop {
	uint32_t side, devid, module_id, pg_type, mem_type;
	uint64_t reserve;
};

/* Total and free bytes of the device's HBM, for all processes. */
struct MemInfo {
	uint64_t phy_total, phy_free;
};

drvError_t halMemAlloc(void **pp, unsigned long long size, unsigned long long flag);
drvError_t halMemFree(void *pp);
drvError_t halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop,
			uint64_t flag);
drvError_t halMemRelease(drv_mem_handle_t *handle);
drvError_t halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *addr, uint64_t flag);
drvError_t halMemAddressFree(void *ptr);
drvError_t halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag);
drvError_t halMemUnmap(void *ptr);
/* `info` of halMemcpy: which way, as aclrtMemcpyKind has it, and whose memory. */
struct memcpy_info {
	int32_t dir;
	uint32_t devid;
	uint32_t reserved[4];
};

drvError_t halMemcpy(void *dst, size_t dst_size, void *src, size_t count, void *info);
drvError_t halMemGetInfo(uint32_t devId, unsigned int type, struct MemInfo *info);

/* Profiling channels. */

#define PROF_OK 0
#define PROF_ERROR (-1)
#define PROF_TIMEOUT (-2)
#define PROF_STARTED_ALREADY (-3)
#define PROF_STOPPED_ALREADY (-4)
#define PROF_ERESTART (-5)
#define PROF_NOT_READABLE (-6)
#define PROF_BUSY (-8)
#define PROF_BUF_SIZE_NOT_ENOUGH (-9)
#define PROF_NOT_ENOUGH_SUB_CHANNEL_RESOURCE (-10)
#define PROF_VF_SUB_RESOURCE_FULL (-11)
#define PROF_TS_NO_CONTEXT 115
#define PROF_CHANNELS 160

enum { PROF_TS_TYPE, PROF_PERIPHERAL_TYPE };
enum {
	CHANNEL_HBM = 1,
	CHANNEL_PCIE = 3,
	CHANNEL_NIC = 4,
	CHANNEL_DDR = 7,
	CHANNEL_LLC = 8,
	CHANNEL_HCCS = 9,
	CHANNEL_AICORE = 43,
	CHANNEL_TSFW = 44,
	CHANNEL_HWTS_LOG = 45,
	CHANNEL_TSFW_L2 = 47,
	CHANNEL_STARS_SOC_LOG = 50,
	CHANNEL_STARS_BLOCK_LOG = 51,
	CHANNEL_STARS_SOC_PROFILE = 52,
	CHANNEL_FFTS_PROFILE_TASK = 53,
	CHANNEL_FFTS_PROFILE_SAMPLE = 54,
	CHANNEL_AIV = 85,
	CHANNEL_ROCE = 129,
	CHANNEL_NPU_APP_MEM = 130,
	CHANNEL_NPU_MEM = 131,
	CHANNEL_LP = 132,
	CHANNEL_QOS = 133,
	CHANNEL_SOC_PMU = 134,
	CHANNEL_NPU_MODULE_MEM = 142,
	CHANNEL_AICPU = 143,
	CHANNEL_UB = 146,
};

typedef struct {
	char name[32];
	uint32_t type;
	uint32_t id;
} channel_info_t;

typedef struct {
	uint32_t chip_type, channel_num;
	channel_info_t channel[PROF_CHANNELS];
} channel_list_t;

struct prof_start_para {
	int32_t channel_type;
	uint32_t sample_period;
	uint32_t real_time;
	void *user_data;
	uint32_t user_data_size;
};

struct prof_poll_info {
	uint32_t device_id, channel_id;
};

_Static_assert(sizeof(channel_list_t) == 6408, "ABI");
_Static_assert(sizeof(struct prof_start_para) == 32, "ABI");

int prof_drv_get_channels(unsigned int device_id, channel_list_t *channels);
int prof_drv_start(unsigned int device_id, unsigned int channel_id, struct prof_start_para *para);
int prof_stop(unsigned int device_id, unsigned int channel_id);
int prof_channel_read(unsigned int device_id, unsigned int channel_id, char *buf, unsigned int size);
int prof_channel_poll(struct prof_poll_info *out, int num, int timeout);
int halProfDataFlush(unsigned int device_id, unsigned int channel_id, unsigned int *data_len);
int halProfQueryAvailBufLen(unsigned int device_id, unsigned int channel_id, unsigned int *len);

#pragma GCC visibility pop

#endif
