import type { AnswerOf, BodyOf, Parts, Route } from "../api/operation-table.ts";

type Call = <R extends Route>(route: R, parts: Parts<R>) => Promise<AnswerOf<R>>;

/** Who may do what. All but `whoAmI` needs the permission `admin`. */
export class AccessCalls {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  whoAmI() {
    return this.#call("GET /session", {});
  }

  tokens() {
    return this.#call("GET /tokens", {});
  }

  /** The answer has the token's text, which is told only this once. */
  createToken(token: BodyOf<"POST /tokens">) {
    return this.#call("POST /tokens", { body: token });
  }

  revokeToken(id: string) {
    return this.#call("DELETE /tokens/{id}", { params: { id } });
  }

  users() {
    return this.#call("GET /users", {});
  }

  addUser(user: BodyOf<"POST /users">) {
    return this.#call("POST /users", { body: user });
  }

  setPassword(name: string, password: string) {
    return this.#call("PUT /users/{name}/password", { params: { name }, body: { password } });
  }

  removeUser(name: string) {
    return this.#call("DELETE /users/{name}", { params: { name } });
  }
}
