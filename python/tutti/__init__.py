"""tutti for Python: what programs need beside libnccl.so.2. `tutti.torch` runs PyTorch on the software GPU, `tutti.launch`
starts the ranks of a job."""
