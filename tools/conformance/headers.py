# SPDX-License-Identifier: BSD-2-Clause
"""The exact header lines of the text files, per generation."""

from __future__ import annotations

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
# absolute times: three decimals and a TAB, never quoted
TIME_COLUMNS = ("Start Time(us)", "Task Start Time(us)", "Timestamp(us)", "Allocation Time(us)", "Release Time(us)",
                "Active Release Time(us)", "task_start(us)", "task_stop(us)")


def allowed(stem: str, generation: str) -> list[str]:
    """Header lines that STEM.csv may have; empty if the file is not known."""
    if stem == "kernel_details":
        return _kernel_details(generation)
    if stem in _CANN:
        return ["Device_id," + line if generation == "B" else line for line in _CANN[stem]]
    return _TORCH.get(stem, [])
