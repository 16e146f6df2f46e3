"""The Django app, which has the model of the tasks and the worker's command."""

from django.apps import AppConfig


class TasksConfig(AppConfig):
    """Tasks in the table."""

    name = "dynamo_single.contrib.tasks"
    label = "dynamo_tasks"
    verbose_name = "Tasks"
