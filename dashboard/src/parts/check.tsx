interface CheckProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly type?: "checkbox" | "radio";
  readonly name?: string;
}

/** A box to tick, or with the type `radio` one of several, with its text beside it. */
export function Check({ label, onChange, type = "checkbox", ...input }: CheckProps) {
  return (
    <label class="inline">
      <input type={type} {...input} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}
