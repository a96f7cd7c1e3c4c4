"""The CUDA path: the whole encode on a device. A module for each stage, and what is around them.

Launch code sees a `saphira_gpu.devices.Device`, so all of it runs on the host executor too.
"""
