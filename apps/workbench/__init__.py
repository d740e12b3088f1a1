"""The workbench: programs that users look at in a browser (TensorBoard, Jupyter), each a job with a port."""
