/* SPDX-License-Identifier: BSD-2-Clause */
/* ACL on top of rt: devices, contexts, streams, events. */
#include "internal.h"

static atomic_bool initialised;

aclError aclInitImpl(const char *configPath)
{
	(void)configPath;
	return atomic_exchange(&initialised, true) ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS;
}

aclError aclFinalizeImpl(void)
{
	return atomic_exchange(&initialised, false) ? ACL_SUCCESS : ACL_ERROR_UNINITIALIZE;
}

const char *aclGetRecentErrMsgImpl(void)
{
	return NULL;
}

aclError aclrtSetDeviceImpl(int32_t deviceId)
{
	return rtSetDevice(deviceId);
}

aclError aclrtResetDeviceImpl(int32_t deviceId)
{
	return rtDeviceReset(deviceId);
}

aclError aclrtResetDeviceForceImpl(int32_t deviceId)
{
	return rtDeviceResetForce(deviceId);
}

aclError aclrtGetDeviceImpl(int32_t *deviceId)
{
	return rtGetDevice(deviceId);
}

aclError aclrtGetDeviceCountImpl(uint32_t *count)
{
	int32_t n;
	rtError_t err = rtGetDeviceCount(&n);

	if (err)
		return err;
	*count = (uint32_t)n;
	return ACL_SUCCESS;
}

const char *aclrtGetSocNameImpl(void)
{
	return "Ascend910B3";
}

/* Only a set device has a known driver number. */
aclError aclrtGetLogicDevIdByUserDevIdImpl(int32_t user, int32_t *logic)
{
	struct context *ctx = context_current();

	if (!ctx || ctx->user_device != user)
		return ACL_ERROR_RT_INVALID_DEVICEID;
	*logic = (int32_t)ctx->device;
	return ACL_SUCCESS;
}

aclError aclrtDeviceGetBareTgidImpl(int32_t *pid)
{
	*pid = drvDeviceGetBareTgid();
	return ACL_SUCCESS;
}

aclError aclrtCreateContextImpl(aclrtContext *ctx, int32_t deviceId)
{
	return rtCtxCreate(ctx, 0, deviceId);
}

aclError aclrtDestroyContextImpl(aclrtContext ctx)
{
	return rtCtxDestroy(ctx);
}

aclError aclrtSetCurrentContextImpl(aclrtContext ctx)
{
	return rtCtxSetCurrent(ctx);
}

aclError aclrtGetCurrentContextImpl(aclrtContext *ctx)
{
	return rtCtxGetCurrent(ctx);
}

aclError aclrtCreateStreamImpl(aclrtStream *stream)
{
	return rtStreamCreate(stream, 0);
}

aclError aclrtCreateStreamWithConfigImpl(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
	(void)flag;
	return rtStreamCreate(stream, (int32_t)priority);
}

aclError aclrtDestroyStreamImpl(aclrtStream stream)
{
	return rtStreamDestroy(stream);
}

aclError aclrtDestroyStreamForceImpl(aclrtStream stream)
{
	return rtStreamDestroyForce(stream);
}

aclError aclrtStreamGetIdImpl(aclrtStream stream, int32_t *streamId)
{
	return rtsStreamGetId(stream, streamId);
}

aclError aclrtSynchronizeStreamImpl(aclrtStream stream)
{
	return rtStreamSynchronize(stream);
}

aclError aclrtSynchronizeStreamWithTimeoutImpl(aclrtStream stream, int32_t timeout)
{
	return rtStreamSynchronizeWithTimeout(stream, timeout);
}

aclError aclrtSynchronizeDeviceImpl(void)
{
	return rtDeviceSynchronize();
}

aclError aclrtSynchronizeDeviceWithTimeoutImpl(int32_t timeout)
{
	return rtDeviceSynchronizeWithTimeout(timeout);
}

aclError aclrtGetThreadLastTaskIdImpl(uint32_t *taskId)
{
	return rtsGetThreadLastTaskId(taskId);
}

aclError aclrtCreateEventImpl(aclrtEvent *event)
{
	return rtEventCreate(event);
}

aclError aclrtCreateEventWithFlagImpl(aclrtEvent *event, uint32_t flag)
{
	return rtEventCreateWithFlag(event, flag);
}

aclError aclrtCreateEventExWithFlagImpl(aclrtEvent *event, uint32_t flag)
{
	return rtEventCreateWithFlag(event, flag);
}

aclError aclrtDestroyEventImpl(aclrtEvent event)
{
	return rtEventDestroy(event);
}

aclError aclrtRecordEventImpl(aclrtEvent event, aclrtStream stream)
{
	TRUTH_CALL("aclrtRecordEvent");
	return rtEventRecord(event, stream);
}

aclError aclrtRecordEventWithFlagImpl(aclrtEvent event, aclrtStream stream, uint32_t flag)
{
	TRUTH_CALL("aclrtRecordEventWithFlag");
	(void)flag;
	return rtEventRecord(event, stream);
}

aclError aclrtStreamWaitEventImpl(aclrtStream stream, aclrtEvent event)
{
	TRUTH_CALL("aclrtStreamWaitEvent");
	return rtStreamWaitEvent(stream, event);
}

aclError aclrtStreamWaitEventWithTimeoutImpl(aclrtStream stream, aclrtEvent event, int32_t timeout)
{
	TRUTH_CALL("aclrtStreamWaitEventWithTimeout");
	(void)timeout;
	return rtStreamWaitEvent(stream, event);
}

aclError aclrtQueryEventStatusImpl(aclrtEvent event, aclrtEventRecordedStatus *status)
{
	return rtEventQueryStatus(event, status);
}

aclError aclrtQueryEventWaitStatusImpl(aclrtEvent event, aclrtEventWaitStatus *status)
{
	return rtEventQueryStatus(event, status);
}

/* Counts the other way round: 0 complete, 1 not ready. */
aclError aclrtQueryEventImpl(aclrtEvent event, aclrtEventStatus *status)
{
	int recorded;
	rtError_t err = rtEventQueryStatus(event, &recorded);

	if (err)
		return err;
	*status = !recorded;
	return ACL_SUCCESS;
}

aclError aclrtSynchronizeEventImpl(aclrtEvent event)
{
	return rtEventSynchronize(event);
}

aclError aclrtSynchronizeEventWithTimeoutImpl(aclrtEvent event, int32_t timeout)
{
	return rtEventSynchronizeWithTimeout(event, timeout);
}

aclError aclrtEventElapsedTimeImpl(float *ms, aclrtEvent start, aclrtEvent end)
{
	return rtEventElapsedTime(ms, start, end);
}

aclError aclrtEventGetTimestampImpl(aclrtEvent event, uint64_t *timestamp)
{
	return rtEventGetTimeStamp(timestamp, event);
}

aclError aclrtCreateNotifyImpl(aclrtNotify *notify, uint64_t flag)
{
	int32_t device = 0;
	rtError_t err = rtGetDevice(&device);

	(void)flag;
	return err ? err : rtNotifyCreate(device, notify);
}

aclError aclrtDestroyNotifyImpl(aclrtNotify notify)
{
	return rtNotifyDestroy(notify);
}

aclError aclrtRecordNotifyImpl(aclrtNotify notify, aclrtStream stream)
{
	TRUTH_CALL("aclrtRecordNotify");
	return rtNotifyRecord(notify, stream);
}

aclError aclrtWaitAndResetNotifyImpl(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
	TRUTH_CALL("aclrtWaitAndResetNotify");
	return rtNotifyWaitWithTimeOut(notify, stream, timeout);
}
