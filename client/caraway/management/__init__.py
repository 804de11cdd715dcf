"""The client of the management API: organizations, projects and deployments.

    import caraway

    with caraway.Management() as management:
        project = management.create_project(name="sales")
        management.update_project(project["id"], manifest="version: v1\nkind: Caraway\nname: sales")
        management.create_deployment(project["id"])

Methods have the names of the operations in the OpenAPI document of the service. They are made from
it, see `routes`.
"""
