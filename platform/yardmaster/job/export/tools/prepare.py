# Copies the code to where it can be written, and makes the folders of the task: prepare.py SOURCE TARGET FOLDER...
import os
import shutil
import sys

source, target, *folders = sys.argv[1:]
for folder in folders:
    os.makedirs(folder, exist_ok=True)
# A mounted ConfigMap has its files behind links to folders that begin with two dots.
shutil.copytree(
    source, target, ignore=lambda _, names: [one for one in names if one.startswith("..")], dirs_exist_ok=True
)
