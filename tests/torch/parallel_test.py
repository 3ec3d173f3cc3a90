"""Data-parallel, sharded and tensor-parallel training give what one process on the processor gives."""
import copy
import tempfile
import unittest

import ranks
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

STEPS = 4
BATCH = 16


def model():
    return nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 4))


def data():
    source = torch.Generator().manual_seed(5)
    return torch.randn(BATCH, 12, generator=source), torch.randint(0, 4, (BATCH,), generator=source)


def train(network, values, labels, device):
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = nn.functional.cross_entropy(network(values.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def reference():
    """Trained by one process on CPU tensors, with all the data."""
    torch.manual_seed(0)
    network = model()
    train(network, *data(), "cpu")
    return [one.detach() for one in network.parameters()]


def start():
    torch.manual_seed(0)
    return model().cuda()


def shares(rank, size):
    values, labels = data()
    return values[rank::size], labels[rank::size]


def whole(parameter):
    return (parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter).detach().cpu()


def compare(parameters, what):
    for actual, wanted in zip(parameters, reference(), strict=True):
        torch.testing.assert_close(whole(actual), wanted, rtol=1e-3, atol=1e-4, msg=lambda text: f"{what}: {text}")


def data_parallel(rank, size):
    network = DistributedDataParallel(start(), device_ids=[rank])
    train(network, *shares(rank, size), "cuda")
    compare(network.parameters(), "DDP")


def sharded(rank, size):
    network = start()
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    train(fully_shard(network), *shares(rank, size), "cuda")
    compare(network.parameters(), "FSDP2")


def sharded_the_old_way(rank, size):
    network = FullyShardedDataParallel(start(), device_id=rank, use_orig_params=True)
    train(network, *shares(rank, size), "cuda")
    with FullyShardedDataParallel.summon_full_params(network):
        compare(network.parameters(), "FSDP1")


def sharded_in_groups(rank, size):
    mesh = init_device_mesh("cuda", (size // 2, 2), mesh_dim_names=("replicas", "shards"))
    network = fully_shard(start(), mesh=mesh)
    train(network, *shares(rank, size), "cuda")
    compare(network.parameters(), "HSDP")


def tensor_parallel(rank, size):
    mesh = init_device_mesh("cuda", (size,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel(), "4": ColwiseParallel(output_layouts=Replicate())}
    network = parallelize_module(start(), mesh, plan)
    train(network, *data(), "cuda")
    compare(network.parameters(), "tensor parallel")


def normalised_together(rank, size):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
    shared = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)).cuda()
    shared = DistributedDataParallel(shared, device_ids=[rank])
    values = torch.randn(8, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    plain(values).pow(2).mean().backward()
    shared(values[rank::size].cuda()).pow(2).mean().backward()
    for (name, one), other in zip(plain.named_parameters(), shared.parameters()):
        torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=1e-3, atol=1e-4, msg=lambda text: f"{name}: {text}")
    torch.testing.assert_close(shared.module[1].running_var.cpu(), plain[1].running_var, rtol=1e-4, atol=1e-5)


def kept_in_a_checkpoint(rank, size):
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    network = fully_shard(start())
    train(network, *shares(rank, size), "cuda")
    checkpoint.save(network.state_dict(), checkpoint_id=folder[0])
    other = fully_shard(start())
    state = other.state_dict()
    checkpoint.load(state, checkpoint_id=folder[0])
    other.load_state_dict(state)
    compare(other.parameters(), "a checkpoint of FSDP2")


class Parallel(unittest.TestCase):
    def test_trains_as_one_process_does(self):
        kinds = (data_parallel, sharded, sharded_the_old_way, sharded_in_groups, tensor_parallel, normalised_together,
                 kept_in_a_checkpoint)
        for size in (2, 4):
            with self.subTest(ranks=size):
                ranks.run(size, ranks.InTurn(kinds))


if __name__ == "__main__":
    unittest.main()
