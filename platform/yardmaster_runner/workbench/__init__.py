"""The programs of the workbench, in the place of a script: TensorBoard and JupyterLab, each behind the task's gate."""
