# SPDX-License-Identifier: BSD-2-Clause
"""Tables of the profiler database and of analysis.db, as data.

One string a table: columns in order with their types, `*` marks the primary
key.  `I` INTEGER, `N` NUMERIC, `T` TEXT, `R` REAL.
"""

from __future__ import annotations

import functools

Column = tuple[str, str, bool]

_TYPES = {"I": "INTEGER", "N": "NUMERIC", "T": "TEXT", "R": "REAL"}

_COMMON = {
    "SESSION_TIME_INFO": "startTimeNs I,endTimeNs I",
    "NPU_INFO": "id I,name T",
    "HOST_INFO": "hostUid T,hostName T",
    "META_DATA": "name T,value T",
    "RANK_DEVICE_MAP": "rankId I,deviceId I",
    "STRING_IDS": "id I*,value T",
    "TASK": "startNs I,endNs I,deviceId I,connectionId I,globalTaskId I,globalPid I,taskType I,contextId I,"
            "streamId I,taskId I,modelId I",
    "CANN_API": "startNs I,endNs I,type I,globalTid I,connectionId I*,name I",
    "NPU_MEM": "type I,ddr N,hbm N,timestampNs I,deviceId I",
    "NPU_MODULE_MEM": "moduleId I,timestampNs I,totalReserved N,deviceId I",
    "NPU_OP_MEM": "operatorName I,addr I,type I,size I,timestampNs I,globalTid I,totalAllocate N,totalReserve N,"
                  "component I,deviceId I",
    "HBM": "deviceId I,timestampNs I,bandwidth N,hbmId I,type I",
    "LLC": "deviceId I,llcId I,timestampNs I,hitRate R,throughput I,mode I",
    "SOC_BANDWIDTH_LEVEL": "l2BufferBwLevel I,mataBwLevel I,timestampNs N,deviceId I",
    "ACC_PMU": "accId I,readBwLevel I,writeBwLevel I,readOstLevel I,writeOstLevel I,timestampNs N,deviceId I",
    "STEP_TIME": "id I,startNs I,endNs I",
    "PYTORCH_API": "startNs T,endNs T,globalTid I,connectionId I,name I,sequenceNumber I,fwdThreadId I,inputDtypes I,"
                   "inputShapes I,callchainId I,type I",
    "CONNECTION_IDS": "id I,connectionId I",
    "PYTORCH_CALLCHAINS": "id I,stack I,stackDepth I",
    "MEMORY_RECORD": "component I,timestamp I,totalAllocated I,totalReserved I,totalActive I,streamPtr I,deviceId I",
    "OP_MEMORY": "name I,size I,allocationTime I,releaseTime I,activeReleaseTime I,duration I,activeDuration I,"
                 "allocationTotalAllocated I,allocationTotalReserved I,allocationTotalActive I,"
                 "releaseTotalAllocated I,releaseTotalReserved I,releaseTotalActive I,streamPtr I,deviceId I",
    "TASK_PMU_INFO": "globalTaskId I,name I,value N",
    "GC_RECORD": "startNs I,endNs I,globalTid I",
    "MSTX_EVENTS": "startNs I,endNs I,eventType I,rangeId I,category I,message I,globalTid I,endGlobalTid I,"
                   "domainId I,connectionId I",
    "DDR": "deviceId I,timestampNs I,read N,write N",
    "HCCS": "deviceId I,timestampNs I,txThroughput N,rxThroughput N",
}
_ENUMS = ("ENUM_API_TYPE", "ENUM_MODULE", "ENUM_HCCL_DATA_TYPE", "ENUM_HCCL_LINK_TYPE", "ENUM_HCCL_TRANSPORT_TYPE",
          "ENUM_HCCL_RDMA_TYPE", "ENUM_MSTX_EVENT_TYPE")
_NEW_ENUMS = ("ENUM_MEMCPY_OPERATION", "ENUM_OVERLAP_ANALYSIS_TYPE")

_COMM_TASK = ("name I,globalTaskId I,taskType I,planeId I,groupName I,notifyId I,rdmaType I,srcRank I,dstRank I,"
              "transportType I,size I,dataType I,linkType I,opId I")
_COMM_OP = ("opName I,startNs I,endNs I,connectionId I,groupName I,opId I*,relay I,retry I,dataType I,algType I,"
            "count N,opType I")
_SHAPES = "inputFormats I,inputDataTypes I,inputShapes I,outputFormats I,outputDataTypes I,outputShapes I"
_COMPUTE = "name I,globalTaskId I*,{0} I,{1} I,taskType I,opType I," + _SHAPES + ",attrInfo I"

_OLD = {
    "COMPUTE_TASK_INFO": _COMPUTE.format("blockDim", "mixBlockDim"),
    "COMMUNICATION_TASK_INFO": _COMM_TASK,
    "COMMUNICATION_OP": _COMM_OP,
    "AICORE_FREQ": "deviceId I,timestampNs N,freq I",
}

_PORT = ("deviceId I,timestampNs I,bandwidth I,rxPacketRate N,rxByteRate N,rxPackets I,rxBytes I,rxErrors I,"
         "rxDropped I,txPacketRate N,txByteRate N,txPackets I,txBytes I,txErrors I,txDropped I,funcId I")
_PCIE = "deviceId I,timestampNs I," + ",".join(
    f"{name}{kind} N" for name in ("txPost", "txNonpost", "txCpl", "txNonpostLatency", "rxPost", "rxNonpost", "rxCpl")
    for kind in ("Min", "Max", "Avg"))
_NETDEV = "deviceId I,timestampNs I," + ",".join(
    f"{name} {'N' if name.endswith('Bandwidth') else 'I'}" for name in (
        "macTxPfcPkt", "macRxPfcPkt", "macTxByte", "macTxBandwidth", "macRxByte", "macRxBandwidth", "macTxBadByte",
        "macRxBadByte", "roceTxPkt", "roceRxPkt", "roceTxErrPkt", "roceRxErrPkt", "roceTxCnpPkt", "roceRxCnpPkt",
        "roceNewPktRty", "nicTxByte", "nicTxBandwidth", "nicRxByte", "nicRxBandwidth"))

_NEW = {
    "COMPUTE_TASK_INFO": _COMPUTE.format("blockNum", "mixBlockNum") +
                         ",opState I,hf32Eligible I,gridDim I,blockDim I",
    "COMMUNICATION_TASK_INFO": _COMM_TASK + ",isMaster I,bandwidth N",
    "COMMUNICATION_OP": _COMM_OP + ",deviceId I,rankSize I",
    "AICORE_FREQ": "deviceId I,timestampNs N,freq I,dieId N",
    "COMMUNICATION_SCHEDULE_TASK_INFO": "name I,globalTaskId I*,taskType I,opType I",
    "MEMCPY_INFO": "globalTaskId N,size N,memcpyOperation N",
    "CPU_USAGE": "timestampNs N,cpuId N,usage N",
    "HOST_MEM_USAGE": "timestampNs N,usage N",
    "HOST_DISK_USAGE": "timestampNs N,readRate N,writeRate N,usage N",
    "HOST_NETWORK_USAGE": "timestampNs N,usage N,speed N",
    "OSRT_API": "name N,globalTid N,startNs N,endNs N",
    "OVERLAP_ANALYSIS": "id I*,deviceId I,startNs N,endNs N,type I",
    "QOS": "deviceId I,eventName N,bandwidth N,timestampNs N,dieId N",
    "NIC": _PORT,
    "ROCE": _PORT,
    "PCIE": _PCIE,
    "NETDEV_STATS": _NETDEV,
    "SAMPLE_PMU_TIMELINE": "deviceId I,timestampNs I,totalCycle I,usage N,freq N,coreId I,coreType I",
    "SAMPLE_PMU_SUMMARY": "deviceId I,metric I,value N,coreId I,coreType I",
    "DPU_TASK": "dpuDeviceId I,globalTid N,startNs N,endNs N,globalTaskId N,streamId N,taskId N,opName N,args N",
    "UB": "deviceId N,portId N,timestampNs N,rxUdmaBind N,txUdmaBind N",
    "SIO": "deviceId N,name N,timestampNs N,rxReq N,rxRsp N,rxSnp N,rxDat N,txReq N,txRsp N,txSnp N,txDat N",
    "CCU": "deviceId N,globalTaskId N,name N,startNs N,endNs N,args N",
}

_STEP_TRACE = ("step T,computing N,communication_not_overlapped N,overlapped N,communication N,free N,stage N,bubble N,"
               "communication_not_overlapped_and_exclude_receive N,preparing N")
_ANALYSIS = {
    "CommAnalyzerBandwidth": "hccl_op_name T,group_name T,transport_type T,transit_size N,transit_time N,bandwidth N,"
                             "large_packet_ratio N,package_size N,count N,total_duration N,step T,type T",
    "CommAnalyzerMatrix": "hccl_op_name T,group_name T,src_rank T,dst_rank T,transport_type T,transit_size N,"
                          "transit_time N,bandwidth N,step T,type T,op_name T",
    "CommAnalyzerTime": "hccl_op_name T,group_name T,start_timestamp N,elapse_time N,transit_time N,wait_time N,"
                        "synchronization_time N,idle_time N,step T,type T",
}

REQUIRED = ("SESSION_TIME_INFO", "NPU_INFO", "HOST_INFO", "META_DATA", "RANK_DEVICE_MAP", "STRING_IDS", "CANN_API")
# columns that only some chips have, always the last ones
OPTIONAL_TAIL = {"COMPUTE_TASK_INFO": ("gridDim", "blockDim")}

# columns that hold ids of STRING_IDS, in any generation
STRING_COLUMNS = {
    "TASK": ("taskType",),
    "COMPUTE_TASK_INFO": ("name", "taskType", "opType", "inputFormats", "inputDataTypes", "inputShapes",
                          "outputFormats", "outputDataTypes", "outputShapes", "attrInfo", "opState", "hf32Eligible"),
    "COMMUNICATION_TASK_INFO": ("name", "taskType", "groupName"),
    "COMMUNICATION_OP": ("opName", "groupName", "algType", "opType"),
    "COMMUNICATION_SCHEDULE_TASK_INFO": ("name", "taskType", "opType"),
    "CANN_API": ("name",),
    "TASK_PMU_INFO": ("name",),
    "OSRT_API": ("name",),
    "MSTX_EVENTS": ("message", "domainId"),
    "NPU_MEM": ("type",),
    "NPU_OP_MEM": ("operatorName", "type", "component"),
    "HBM": ("type",),
    "LLC": ("mode",),
    "QOS": ("eventName",),
    "PYTORCH_API": ("name", "inputDtypes", "inputShapes"),
    "PYTORCH_CALLCHAINS": ("stack",),
    "MEMORY_RECORD": ("component",),
    "OP_MEMORY": ("name",),
}
NULL_ALLOWED = {("PYTORCH_API", "inputDtypes"), ("PYTORCH_API", "inputShapes")}
NONE_ALLOWED = {("MSTX_EVENTS", "message"), ("MSTX_EVENTS", "domainId")}

# columns that hold ids of an enumeration
ENUM_COLUMNS = (
    ("CANN_API", "type", "ENUM_API_TYPE"),
    ("PYTORCH_API", "type", "ENUM_API_TYPE"),
    ("COMMUNICATION_OP", "dataType", "ENUM_HCCL_DATA_TYPE"),
    ("COMMUNICATION_TASK_INFO", "dataType", "ENUM_HCCL_DATA_TYPE"),
    ("COMMUNICATION_TASK_INFO", "linkType", "ENUM_HCCL_LINK_TYPE"),
    ("COMMUNICATION_TASK_INFO", "transportType", "ENUM_HCCL_TRANSPORT_TYPE"),
    ("COMMUNICATION_TASK_INFO", "rdmaType", "ENUM_HCCL_RDMA_TYPE"),
    ("MSTX_EVENTS", "eventType", "ENUM_MSTX_EVENT_TYPE"),
    ("NPU_MODULE_MEM", "moduleId", "ENUM_MODULE"),
    ("MEMCPY_INFO", "memcpyOperation", "ENUM_MEMCPY_OPERATION"),
    ("OVERLAP_ANALYSIS", "type", "ENUM_OVERLAP_ANALYSIS_TYPE"),
)
TIME_COLUMNS = frozenset(("startNs", "endNs", "timestampNs", "timestamp", "allocationTime", "releaseTime",
                          "activeReleaseTime"))

_API = {5000: "runtime", 10000: "node", 15000: "model", 20000: "acl"}
_TORCH_API = {50001: "op", 50002: "queue", 50003: "trace", 50004: "mstx"}
_NONE = {65534: "N/A", 65535: "INVALID_TYPE"}
_DATA = dict(enumerate(("INT8", "INT16", "INT32", "FP16", "FP32", "INT64", "UINT64", "UINT8", "UINT16", "UINT32",
                        "FP64", "BFP16", "INT128")))
_LINK = dict(enumerate(("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE")))
_MODULES = ("SLOG,IDEDD,IDEDH,HCCL,FMK,HIAIENGINE,DVPP,RUNTIME,CCE,HDC,DRV,MDCFUSION,MDCLOCATION,MDCPERCEPTION,MDCFSM,"
            "MDCCOMMON,MDCMONITOR,MDCBSWP,MDCDEFAULT,MDCSC,MDCPNC,MLL,DEVMM,KERNEL,LIBMEDIA,CCECPU,ASCENDDK,ROS,HCCP,"
            "ROCE,TEFUSION,PROFILING,DP,APP,TS,TSDUMP,AICPU,LP,TDT,FE,MD,MB,ME,IMU,IMP,GE,MDCFUSA,CAMERA,ASCENDCL,"
            "TEEOS,ISP,SIS,HSM,DSS,PROCMGR,BBOX,AIVECTOR,TBE,FV,MDCMAP,TUNE,HSS,FFTS,OP,UDF,HICAID,TSYNC,AUDIO,TPRT,"
            "ASCENDCKERNEL,ASYS,ATRACE,RTC,SYSMONITOR,AMP,ADETECT,MBUFF,CUSTOM").split(",")
_REMOVED = {*range(12, 22), 26, 46, 59}
_MSTX = {0: "marker", 1: "push/pop", 2: "start/end", 3: "marker_ex"}

ENUMS: dict[str, dict[str, dict[int, str]]] = {
    "A": {
        "ENUM_API_TYPE": {**_API, 5500: "hccl"},
        "ENUM_HCCL_DATA_TYPE": {**_DATA, **_NONE},
        "ENUM_HCCL_LINK_TYPE": {**_LINK, 7: "RESERVED", **_NONE},
        "ENUM_HCCL_TRANSPORT_TYPE": {0: "SDMA", 1: "RDMA", 2: "LOCAL", **_NONE},
        "ENUM_HCCL_RDMA_TYPE": {**dict(enumerate(("RDMA_SEND_NOTIFY", "RDMA_SEND_PAYLOAD", "RDMA_PAYLOAD_PREPARE",
                                                  "RDMA_PAYLOAD_CHECK", "RDMA_PAYLOAD_ACK", "RDMA_SEND_OP"))), **_NONE},
        "ENUM_MSTX_EVENT_TYPE": _MSTX,
        "ENUM_MODULE": dict(enumerate(_MODULES)),
    },
    "B": {
        "ENUM_API_TYPE": {**_API, 5500: "communication"},
        "ENUM_HCCL_DATA_TYPE": {**_DATA, 14: "HIF8", 15: "FP8E4M3", 16: "FP8E5M2", 17: "FP8E8M0", 255: "RESERVED",
                                **_NONE},
        "ENUM_HCCL_LINK_TYPE": {**_LINK, 7: "UB", 8: "UBoE", 255: "RESERVED", **_NONE},
        "ENUM_HCCL_TRANSPORT_TYPE": {0: "SDMA", 1: "RDMA", 2: "LOCAL", 3: "UB", 4: "ROCE", 255: "RESERVED", **_NONE},
        "ENUM_HCCL_RDMA_TYPE": {0: "RDMA_SEND_NOTIFY", 1: "RDMA_SEND_PAYLOAD", 255: "RESERVED", **_NONE},
        "ENUM_MSTX_EVENT_TYPE": _MSTX,
        "ENUM_MODULE": {number: {2: "SCC", 5: "CCU", 11: "NET"}.get(number, name)
                        for number, name in enumerate(_MODULES) if number not in _REMOVED},
        "ENUM_MEMCPY_OPERATION": {**dict(enumerate((
            "host to host", "host to device", "device to host", "device to device", "managed memory",
            "addr device to device", "host to device ex", "device to host ex"))), 65535: "other"},
        "ENUM_OVERLAP_ANALYSIS_TYPE": {0: "COMPUTE", 1: "COMMUNICATION", 2: "COMM_NOT_OVERLAP_COMP", 3: "FREE",
                                       65535: "RESERVE"},
    },
}
OPTIONAL_ENUM_ROWS = {"ENUM_API_TYPE": _TORCH_API}


def _columns(text: str) -> list[Column]:
    result = []
    for column in text.split(","):
        name, kind = column.split(" ")
        result.append((name, _TYPES[kind[0]], kind.endswith("*")))
    return result


@functools.cache
def tables(generation: str) -> dict[str, list[Column]]:
    """Every table that the profiler database may have."""
    enums = _ENUMS + (_NEW_ENUMS if generation == "B" else ())
    text = {**_COMMON, **(_NEW if generation == "B" else _OLD), **{name: "id I*,name T" for name in enums}}
    return {name: _columns(columns) for name, columns in text.items()}


def required(generation: str) -> set[str]:
    """Tables that are there even without data."""
    return {*REQUIRED, *_ENUMS, *(_NEW_ENUMS if generation == "B" else ())}


@functools.cache
def analysis(generation: str) -> dict[str, list[Column]]:
    """Tables of analysis.db."""
    step = ("deviceId I," if generation == "B" else "") + _STEP_TRACE
    return {name: _columns(columns) for name, columns in {**_ANALYSIS, "StepTraceTime": step}.items()}
