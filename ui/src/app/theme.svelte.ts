// Light, dark, or as the system says.
export type Theme = 'system' | 'light' | 'dark';
const kName = 'vitrine.theme';

class ThemeChoice {
  now = $state<Theme>((localStorage.getItem(kName) as Theme | null) ?? 'system');
  constructor() {
    this.apply();
  }
  set(theme: Theme) {
    this.now = theme;
    localStorage.setItem(kName, theme);
    this.apply();
  }
  private apply() {
    if (this.now === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = this.now;
  }
}
export const theme = new ThemeChoice();
