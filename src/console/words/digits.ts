/** The digits of every number, in all languages: those that the fields take, and that keep their order beside Latin text. */
export const digits = { numberingSystem: 'latn' } as const
