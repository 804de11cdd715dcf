import { Notices } from "./notices";
import { ReactionForm } from "./reaction_form";
import { conditionOf, type ReactionBody } from "./reaction_values";
import type { Reaction } from "./types";

export function Reactions({ id }: { id: string }) {
  return (
    <Notices<Reaction, ReactionBody> id={id} what="reaction" conditionOf={conditionOf} form={(reaction, save, close) => <ReactionForm reaction={reaction} save={save} close={close} />} />
  );
}
