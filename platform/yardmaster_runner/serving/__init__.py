"""The model server: it loads one model and answers TensorFlow Serving's REST API for it.

It runs in the task's own Python, in the place of a script. TensorFlow and NumPy are imported when the model is loaded
(`loading`, `tensors`); all else is the standard library. Not here: who may ask (the portal), and when it is stopped.
"""
