declare module "pg-copy-streams";
