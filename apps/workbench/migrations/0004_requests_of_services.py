from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workbench", "0003_tokens_and_problems")]

    operations = [migrations.RemoveField("workbenchsession", "requests")]
