"""A rank of a job in which rank 1 dies, stays away or comes late.

usage: failing_rank.py BACKEND killed|missing|late
"""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

backend, fate = sys.argv[1:]
rank = int(os.environ["RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
limit = datetime.timedelta(seconds=10 if fate == "missing" else 100)
dist.init_process_group(backend, timeout=limit, device_id=device)
values = torch.ones(1000, device=device)
for _ in range(3):
    dist.all_reduce(values)
torch.cuda.synchronize()
if rank == 1:
    if fate == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(200 if fate == "missing" else 1)
dist.all_reduce(values)
torch.cuda.synchronize()
print(f"rank {rank} has its sum", flush=True)
dist.destroy_process_group()
