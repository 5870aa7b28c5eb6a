# SPDX-License-Identifier: BSD-2-Clause
"""The exact header lines of the text files, per generation."""

from __future__ import annotations

import re
from typing import Union

PIPE_PMU = ("aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,"
            "aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),"
            "aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,"
            "aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
            "aiv_icache_miss_rate,cube_utilization(%)")


def _metric(suffix: str, *names: str) -> list[str]:
    return [name + suffix for name in names]


# aic_metrics other than PipeUtilization -> columns after aic_total_cycles and after aiv_total_cycles
_BANDWIDTH = ("main_mem_read_bw", "main_mem_write_bw", "l2_read_bw", "l2_write_bw")
_CACHE = ["write_cache_hit", "write_cache_miss_allocate", "r0_read_cache_hit", "r0_read_cache_miss_allocate",
          "r1_read_cache_hit", "r1_read_cache_miss_allocate"]
_ACCESS = _metric("(KB)", "read_main_memory_datas", "write_main_memory_datas", "GM_to_L1_datas", "L0C_to_L1_datas",
                  "L0C_to_GM_datas", "GM_to_UB_datas", "UB_to_GM_datas")
_GB = "(GB/s)"
_METRICS: list[tuple[list[str], list[str]]] = [
    (["mac_fp16_ratio", "mac_int8_ratio", "cube_fops"],
     ["vec_fp32_ratio", "vec_fp16_ratio", "vec_int32_ratio", "vec_misc_ratio", "vector_fops"]),
    (_metric(_GB, "l1_read_bw", "l1_write_bw", *_BANDWIDTH), _metric(_GB, "ub_read_bw", "ub_write_bw", *_BANDWIDTH)),
    (_metric(_GB, "l0a_read_bw", "l0a_write_bw", "l0b_read_bw", "l0b_write_bw", "l0c_read_bw_cube",
             "l0c_write_bw_cube"), _metric(_GB, "l0c_read_bw", "l0c_write_bw")),
    (_metric(_GB, "ub_read_bw_scalar", "ub_write_bw_scalar"),
     _metric(_GB, "ub_read_bw_vector", "ub_write_bw_vector", "ub_read_bw_scalar", "ub_write_bw_scalar")),
    ([], ["vec_bankgroup_cflt_ratio", "vec_bank_cflt_ratio", "vec_resc_cflt_ratio"]),
    (_CACHE, _CACHE),
    (_ACCESS, _ACCESS),
]


def pmu_blocks() -> list[str]:
    """Every PMU block that kernel_details may end with; the empty one is `aic_metrics` None."""
    blocks = ["", "," + PIPE_PMU]
    for aic, aiv in _METRICS:
        columns = ["aicore_time(us)", "aic_total_cycles", *("aic_" + name for name in aic),
                   "aiv_time(us)", "aiv_total_cycles", *("aiv_" + name for name in aiv)]
        blocks.append("," + ",".join(columns))
    return blocks


_SHAPES = "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
_TIMES = "Start Time(us),Duration(us),Wait Time(us)"
_STEP = ("", "Step Id,")


def _kernel_details(generation: str) -> list[str]:
    if generation == "A":
        base = [f"{step}Name,Type,Accelerator Core,{_TIMES},Block Dim" for step in _STEP]
        full = [f"{step}Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,{_TIMES},Block Dim,"
                f"Mix Block Dim,HF32 Eligible,{_SHAPES},Context ID" for step in _STEP]
    else:
        base = [f"{step}Device_id,Name,Type,Accelerator Core,{_TIMES},Block Num" for step in _STEP]
        base += [f"{line},{_SHAPES}" for line in base]
        full = [f"{step}Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,{_TIMES},Block Num,"
                f"Mix Block Num,HF32 Eligible,{_SHAPES},Context ID" for step in _STEP]
    return base + [line + block for line in full for block in pmu_blocks()]


# files that CANN writes get a Device_id column in generation B
_CANN = {
    "op_statistic": ["OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"],
    "api_statistic": ["Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance"],
    "step_trace_time": ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
                        "Communication(Not Overlapped and Exclude Receive),Preparing"],
    "npu_module_mem": ["Component,Timestamp(us),Total Reserved(MB),Device"],
    "l2_cache": ["Stream Id,Task Id,Hit Rate,Victim Rate,Op Name"],
    "soc_pmu": ["Stream Id,Task Id,TLB Hit Rate,TLB Miss Rate,Op Name"],
    "task_time": ["kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)"],
    "data_preprocess": ["Timestamp(us),Node,Compute_time(us),Memcpy_time(us),Task_time(us),Dispatch_time(us),"
                        "Total_time(us),Stream ID,Task ID"],
    "hccs": ["Mode,Max,Min,Average"],
    "pcie": ["Mode,Min,Max,Avg"],
    "nic": ["Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,rxError rate(%),rxDropped rate(%),"
            "Tx Bandwidth efficiency(%),txPacket/s,txError rate(%),txDropped rate(%),funcId"],
    "host_cpu_usage": ["Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers"],
    "host_mem_usage": ["Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)"],
    "host_disk_usage": ["Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
                        "Recommend Disk Write(KB/s)"],
    "host_network_usage": ["Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)"],
    "os_runtime_statistic": ["Process ID,Thread ID,Name,Time(%),Time(us),Count,Avg(us),Max(us),Min(us)"],
}
_CANN["roce"] = _CANN["nic"]
_TORCH = {
    "operator_details": ["Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
                         "Device Self Duration(us),Device Total Duration(us),Device Self Duration With AICore(us),"
                         "Device Total Duration With AICore(us)"],
    "operator_memory": ["Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),"
                        "Active Duration(us),Allocation Total Allocated(MB),Allocation Total Reserved(MB),"
                        "Allocation Total Active(MB),Release Total Allocated(MB),Release Total Reserved(MB),"
                        "Release Total Active(MB),Stream Ptr,Device Type"],
    "memory_record": ["Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,"
                      "Device Type"],
}
# what only msprof writes, and what it writes otherwise; the device's column goes in front in generation B
_CORES = r"Core ID(,[A-Za-z0-9_]+(\((us|%|GB/s|KB)\))?)*"
_PROF: dict[str, list[Union[str, re.Pattern[str]]]] = {
    "communication_statistic": ["OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"],
    "op_statistic": [*_CANN["op_statistic"], "Model Name," + _CANN["op_statistic"][0]],
    "npu_mem": ["event,ddr(KB),hbm(KB),memory(KB),timestamp(us)"],
    "npu_module_mem": ["Component,Timestamp(us),Total Reserved(KB),Device"],
    "memory_record": ["Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device"],
    "operator_memory": ["Name,Size(KB),Allocation Time(us),Duration(us),Allocation Total Allocated(KB),"
                        "Allocation Total Reserved(KB),Release Total Allocated(KB),Release Total Reserved(KB),Device"],
    "static_op_mem": ["Op Name,Model Name,Graph ID,Node Index Start,Node Index End,Size(KB)"],
    "aicpu": _CANN["data_preprocess"],
    "aicpu_mi": ["Node Name,Start Time(us),End Time(us),Queue Size"],
    "dp": ["Timestamp(us),Action,Source,Cached Buffer Size"],
    "fusion_op": ["Model Name,Model ID,Fusion Op,Original Ops,Memory Input(KB),Memory Output(KB),Memory Weight(KB),"
                  "Memory Workspace(KB),Memory Total(KB)"],
    "step_trace": [re.compile(r"(Device_id,)?Iteration ID,FP Start\(us\),BP End\(us\),Iteration End\(us\),"
                              r"Iteration Time\(us\),FP to BP Time\(us\),Iteration Refresh\(us\),"
                              r"Data Aug Bound\(us\),Model ID(,Reduce Start\(us\),Reduce Duration\(us\))*")],
    "msprof_tx": ["pid,tid,category,event_type,payload_type,payload_value,Start_time(us),End_time(us),message_type,"
                  "message" + tail for tail in ("", ",domain", ",domain,Device Start_time(us),Device End_time(us)")],
    "page_fault": ["Stream Id,Task Id,Page Fault Num,Op Name"],
    "ddr": ["Metric,Read(MB/s),Write(MB/s)"],
    "hbm": ["Metric,Read(MB/s),Write(MB/s)"],
    "llc_read_write": ["Mode,Task,Hit Rate(%),Throughput(MB/s)"],
    "dvpp": ["Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)"],
    "cpu_usage": ["Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)"],
    "process_cpu_usage": ["PID,Name,CPU(%)"],
    "sys_mem": ["Memory Total(kB),Memory Free(kB),Buffers(kB),Cached(kB),Share Memory(kB),Commit Limit(kB),"
                "Committed AS(kB),Huge Pages Total(pages),Huge Pages Free(pages)"],
    "process_mem": ["PID,Name,Size(pages),Resident(pages),Shared(pages)"],
    "ub": ["PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)"],
    "ai_core_utilization": [re.compile("(Device_id,)?" + _CORES)],
    "ai_vector_core_utilization": [re.compile("(Device_id,)?" + _CORES)],
    **{f"{cpu}_cpu_top_function": ["Function,Module,Cycles,Cycles(%)"] for cpu in ("ctrl", "ai")},
    "ts_cpu_top_function": ["Function,Cycles,Cycles(%)"],
    **{f"{cpu}_cpu_pmu_events": ["Event,Name,Count"] for cpu in ("ctrl", "ai", "ts")},
}


def _op_summary(generation: str) -> list[str]:
    unit = "Dim" if generation == "A" else "Num"
    line = (f"Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
            f"Task Wait Time(us),Block {unit},Mix Block {unit},HF32 Eligible,{_SHAPES},Context ID")
    return [line + block for block in pmu_blocks()]


# absolute times: three decimals and a TAB, never quoted
TIME_COLUMNS = ("Start Time(us)", "Task Start Time(us)", "Timestamp(us)", "timestamp(us)", "Allocation Time(us)",
                "Release Time(us)", "Active Release Time(us)", "task_start(us)", "task_stop(us)")


def allowed(stem: str, generation: str, prof: bool) -> list[Union[str, re.Pattern[str]]]:
    """Header lines that STEM.csv may have, patterns among them; empty if the file is not known."""
    if stem == "kernel_details" and not prof:
        return list(_kernel_details(generation))
    lines: list[Union[str, re.Pattern[str]]] = []
    if prof:
        lines = list(_op_summary(generation)) if stem == "op_summary" else _PROF.get(stem, [])
    elif stem in _TORCH:
        return list(_TORCH[stem])
    lines = lines or list(_CANN.get(stem, []))
    return ["Device_id," + line if generation == "B" and isinstance(line, str) else line for line in lines]
